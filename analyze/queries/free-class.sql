-- question: What happens to a slab when an object is freed on the slow path?
-- columns: run, variant, cache; then one count per transition of the slab: partial->partial, full->partial, partial->empty, full->empty; frees: their sum
-- param run: one run (default: all)
-- param cache: name of one cache (default: all)
-- example: slabtape query T free-class --param run=1
SELECT f.run, r.variant, c.name AS cache,
       sum(f.count) FILTER (WHERE f.class = 'partial->partial') AS "partial->partial",
       sum(f.count) FILTER (WHERE f.class = 'full->partial') AS "full->partial",
       sum(f.count) FILTER (WHERE f.class = 'partial->empty') AS "partial->empty",
       sum(f.count) FILTER (WHERE f.class = 'full->empty') AS "full->empty",
       sum(f.count) AS frees
  FROM free_class f
  JOIN run r USING(run)
  LEFT JOIN cache c ON c.cache = f.cache
 WHERE (:run IS NULL OR f.run = :run) AND (:cache IS NULL OR c.name = :cache)
 GROUP BY f.run, f.cache
 ORDER BY f.run, frees DESC, cache;
