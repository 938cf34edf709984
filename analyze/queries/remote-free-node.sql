-- question: Which node frees objects that which node allocated?
-- columns: alloc_node, free_node: nodes of the two CPUs; objects: freed objects of the pair; bytes: their requested bytes; share: part of all freed objects, 0..1
-- param cache: name of one cache (default: all)
-- example: slabtape query T remote-free-node
SELECT alloc_node, free_node, sum(objects) AS objects, sum(bytes) AS bytes,
       round(1.0 * sum(objects) / sum(sum(objects)) OVER (), 4) AS share
  FROM object_agg
 WHERE freed = 1 AND alloc_node IS NOT NULL
   AND (:cache IS NULL OR cache = (SELECT cache FROM cache WHERE name = :cache))
 GROUP BY alloc_node, free_node
 ORDER BY alloc_node, free_node;
