-- question: Do frees keep emptying a CPU's whole list of partial slabs at once?
-- columns: run, variant, cache; drains: lists emptied; frees; per_free: drains / frees; slabs: slabs that went from CPUs' lists to node lists or back to the page allocator (runs with transitions); per_drain: slabs / drains
-- data: counters of an allocator with per-CPU partial lists
-- loss: 0.01
-- param per_free=0.08: every twelfth free takes the list lock for a whole list of slabs; hackbench on 6.1, which nobody called a storm, stays between 0.014 and 0.054
-- param least=100: drains; fewer are no storm, whatever their share
-- text storm: {cache} drains in storms on {variant}: {drains} times in {frees} frees ({per_free%}) a CPU's list of partial slabs overflowed and was emptied under the list lock
WITH n AS (
       SELECT run, cache, sum(value) FILTER (WHERE name = 'cpu_partial_drain') AS drains,
              sum(value) FILTER (WHERE name IN ('free_fastpath', 'free_slowpath')) AS frees
         FROM counter
        WHERE cpu IS NULL AND (:run IS NULL OR run = :run)
        GROUP BY run, cache),
     t AS (
       SELECT run, cache, sum(transitions) AS slabs FROM transition_agg
        WHERE from_state = 'cpu_partial' AND to_state IN ('partial', 'empty', 'none')
          AND (:run IS NULL OR run = :run)
        GROUP BY run, cache)
SELECT n.run, r.variant, c.name AS cache, n.drains, n.frees, round(1.0 * n.drains / n.frees, 4) AS per_free,
       t.slabs, round(1.0 * t.slabs / n.drains, 1) AS per_drain,
       CASE WHEN n.drains >= :per_free * n.frees AND n.drains >= :least THEN 'storm' END AS finding
  FROM n
  JOIN run r USING(run)
  JOIN cache c USING(cache)
  LEFT JOIN t ON t.run = n.run AND t.cache = n.cache
 WHERE r.mode NOT IN ('before', 'after') AND n.frees > 0 AND n.drains > 0
   AND (:cache IS NULL OR c.name = :cache)
 ORDER BY n.run, per_free DESC, c.name;
