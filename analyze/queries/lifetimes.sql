-- question: How long do objects live?
-- columns: cache; from_ns, to_ns: lifetimes from <= t < to in ns, powers of two (NULL: still alive at the end); objects; share: part of the cache's objects, 0..1
-- param cache: name of one cache (default: all)
-- example: slabtape query T lifetimes --param cache=dentry
SELECT c.name AS cache,
       CASE o.lifetime_log2 WHEN 0 THEN 0 ELSE 1 << o.lifetime_log2 END AS from_ns,
       1 << (o.lifetime_log2 + 1) AS to_ns,
       sum(o.objects) AS objects,
       round(1.0 * sum(o.objects) / sum(sum(o.objects)) OVER (PARTITION BY o.cache), 4) AS share
  FROM object_agg o
  LEFT JOIN cache c ON c.cache = o.cache
 WHERE o.alloc_cpu IS NOT NULL AND (:cache IS NULL OR c.name = :cache)
 GROUP BY o.cache, o.lifetime_log2
 ORDER BY c.name, o.lifetime_log2 IS NULL, o.lifetime_log2;
