-- question: Is the list of full sheaves saturated: do CPUs find no room for their full sheaves and flush them?
-- columns: run, variant, cache; puts: full sheaves that a CPU wanted to hand over; failed: share for which there was no room, 0..1; flushed: objects flushed to slabs; frees; per_free: flushed / frees
-- data: counters of an allocator with sheaves
-- loss: 0.01
-- param failed=0.5: more full sheaves are thrown away than kept: the list works against its purpose (2026: 1.37 G failed against 2.7 k kept)
-- param least=50: sheaves; a list holds ten, so that this is several times its room
-- text saturated: {cache} has a saturated full-sheaf list on {variant}: {failed%} of {puts} full sheaves found no room, {flushed} objects were flushed to slabs ({frees} frees)
WITH n AS (
       SELECT run, cache, sum(value) FILTER (WHERE name IN ('barn_put', 'barn_put_fail')) AS puts,
              sum(value) FILTER (WHERE name = 'barn_put_fail') AS failed,
              coalesce(sum(value) FILTER (WHERE name = 'sheaf_flush'), 0) AS flushed,
              sum(value) FILTER (WHERE name IN ('free_fastpath', 'free_slowpath', 'free_rcu_sheaf')) AS frees
         FROM counter
        WHERE cpu IS NULL AND (:run IS NULL OR run = :run)
        GROUP BY run, cache)
SELECT n.run, r.variant, c.name AS cache, n.puts, round(1.0 * n.failed / n.puts, 4) AS failed,
       n.flushed, n.frees, round(1.0 * n.flushed / nullif(n.frees, 0), 4) AS per_free,
       CASE WHEN n.failed >= :failed * n.puts THEN 'saturated' END AS finding
  FROM n
  JOIN run r USING(run)
  JOIN cache c USING(cache)
 WHERE r.mode NOT IN ('before', 'after') AND n.puts >= :least AND n.failed IS NOT NULL
   AND (:cache IS NULL OR c.name = :cache)
 ORDER BY n.run, n.failed DESC, c.name;
