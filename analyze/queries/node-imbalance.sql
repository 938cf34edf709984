-- question: Which caches move objects from one node to another?
-- columns: cache, node: of the CPU; allocs, frees: events on that node; net: allocs - frees (positive: the node allocates what others free); share: part of the cache's allocations, 0..1
-- param cache: name of one cache (default: all)
-- param least=100: leave out caches with fewer allocations
-- example: slabtape query T node-imbalance
WITH n(cache, node, allocs, frees) AS (
       SELECT cache, node,
              sum(CASE WHEN op IN ('alloc', 'alloc_bulk', 'sheaf_alloc') THEN events ELSE 0 END),
              sum(CASE WHEN op IN ('free', 'free_rcu', 'free_bulk') THEN events ELSE 0 END)
         FROM event_agg
        WHERE op IN ('alloc', 'alloc_bulk', 'sheaf_alloc', 'free', 'free_rcu', 'free_bulk')
        GROUP BY cache, node),
     whole(cache, allocs) AS (
       SELECT cache, sum(allocs) FROM n GROUP BY cache)
SELECT c.name AS cache, n.node, n.allocs, n.frees, n.allocs - n.frees AS net,
       round(1.0 * n.allocs / nullif(w.allocs, 0), 4) AS share
  FROM n
  JOIN whole w ON w.cache IS n.cache
  LEFT JOIN cache c ON c.cache = n.cache
 WHERE w.allocs >= :least AND (:cache IS NULL OR c.name = :cache)
 ORDER BY w.allocs DESC, cache, n.node;
