-- question: Do slabs reach a high-water mark and never come back, although the objects do?
-- columns: run, variant, cache; slabs_peak, slabs_end; objs_peak: most objects in use at a sample; objs_after: fewest in use after that; slabs_kept: fewest slabs after the peak / slabs_peak, 0..1; objs_kept: objs_after / objs_peak, 0..1
-- data: a run with --record samples and 16 slabs of a cache
-- loss: 0.01
-- param slabs=0.9: nine slabs in ten stayed
-- param objs=0.5: while at least half of the objects went
-- param least=16: slabs at the peak; below this the slabs of the CPUs alone decide
-- text ratchet: {cache} ratchets on {variant}: after {objs_peak} objects in use at most there were only {objs_after}, but {slabs_kept%} of the {slabs_peak} slabs stayed
WITH s AS (
       SELECT run, cache, ts, vts, sum(slabs) AS slabs, sum(objects_inuse) - sum(cached_objs) AS objs
         FROM sample
        WHERE :run IS NULL OR run = :run
        GROUP BY run, cache, ts, vts),
     top AS (
       SELECT run, cache, max(objs) AS objs, max(slabs) AS slabs FROM s GROUP BY run, cache),
     at AS (
       SELECT s.run, s.cache, min(s.ts) FILTER (WHERE s.objs = top.objs) AS ts
         FROM s JOIN top ON top.run = s.run AND top.cache = s.cache GROUP BY s.run, s.cache),
     m AS (
       SELECT s.run, s.cache, top.slabs AS slabs_peak, top.objs AS objs_peak, min(s.slabs) AS slabs_low,
              min(s.objs) AS objs_after
         FROM s
         JOIN top ON top.run = s.run AND top.cache = s.cache
         JOIN at ON at.run = s.run AND at.cache = s.cache AND s.ts >= at.ts
        GROUP BY s.run, s.cache)
SELECT m.run, r.variant, c.name AS cache, m.slabs_peak,
       (SELECT s.slabs FROM s WHERE s.run = m.run AND s.cache = m.cache ORDER BY s.ts DESC LIMIT 1) AS slabs_end,
       m.objs_peak, m.objs_after, round(1.0 * m.slabs_low / m.slabs_peak, 4) AS slabs_kept,
       round(1.0 * m.objs_after / m.objs_peak, 4) AS objs_kept,
       CASE WHEN m.slabs_low >= :slabs * m.slabs_peak AND m.objs_after <= :objs * m.objs_peak
            THEN 'ratchet' END AS finding
  FROM m
  JOIN run r USING(run)
  JOIN cache c USING(cache)
 WHERE m.slabs_peak >= :least AND m.objs_peak > 0 AND (:cache IS NULL OR c.name = :cache)
 ORDER BY m.run, objs_kept, c.name;
