-- question: Which CPU frees objects that which CPU allocated?
-- columns: alloc_cpu, free_cpu; objects: freed objects of the pair; bytes: their requested bytes; share: part of all freed objects, 0..1
-- param cache: name of one cache (default: all)
-- example: slabtape query T remote-free --param cache=skbuff_head_cache
SELECT alloc_cpu, free_cpu, sum(objects) AS objects, sum(bytes) AS bytes,
       round(1.0 * sum(objects) / sum(sum(objects)) OVER (), 4) AS share
  FROM object_agg
 WHERE freed = 1 AND alloc_cpu IS NOT NULL
   AND (:cache IS NULL OR cache = (SELECT cache FROM cache WHERE name = :cache))
 GROUP BY alloc_cpu, free_cpu
 ORDER BY alloc_cpu, free_cpu;
