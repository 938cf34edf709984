-- question: Does a cache leak: do its live objects grow steadily in the second half of the recording, with the old ones still there?
-- columns: cache; live_half, live_end: objects alive at half time and at the end; growth: share of live_end that came in the second half, 0..1; rises: how many of the last five tenths ended higher than they began; kept: share of the objects alive at half time that are alive at the end, 0..1; objs_per_s, bytes_per_s: growth of the second half
-- data: events that leave 100 objects of a cache alive
-- loss: 0
-- param growth=0.2: a fifth more within half a recording would double the cache in five
-- param rises=5: growth in every tenth: bursts and steps are something else (ratchet)
-- param kept=0.5: a pool that grows but turns over frees its old objects
-- param least=100: objects of growth; below this a single burst of work is as large
-- text leak: {cache} leaks: {live_half} live objects at half time became {live_end} at the end, more in every tenth of the recording, and {kept%} of the old ones are still there: {bytes_per_s:b} a second
WITH span(begin, width) AS (
       SELECT min(ts_min), (max(ts_max) - min(ts_min)) / 10 + 1 FROM chunk),
     part(p) AS (VALUES(0), (1), (2), (3), (4), (5), (6), (7), (8), (9)),
     change(cache, p, n) AS (
       SELECT cache, bucket / (SELECT width FROM span),
              sum(CASE WHEN op IN ('alloc', 'alloc_bulk', 'sheaf_alloc') THEN events
                       WHEN flags & 2 THEN 0
                       ELSE -events END)
         FROM event_agg
        WHERE bucket_ns = (SELECT width FROM span) AND flags & 16 = 0
          AND op IN ('alloc', 'alloc_bulk', 'sheaf_alloc', 'free', 'free_rcu', 'free_bulk')
        GROUP BY 1, 2),
     level(cache, p, live) AS (
       SELECT c.cache, part.p, sum(coalesce(n, 0)) OVER (PARTITION BY c.cache ORDER BY part.p)
         FROM (SELECT DISTINCT cache FROM change) c CROSS JOIN part
         LEFT JOIN change ON change.cache IS c.cache AND change.p = part.p),
     step(cache, p, live, rose) AS (
       SELECT cache, p, live, live > lag(live) OVER (PARTITION BY cache ORDER BY p) FROM level),
     old(cache, objects, kept) AS (
       SELECT cache, sum(objects), sum(objects * alive) FROM (
         SELECT cache, objects, 1 - freed AS alive FROM object_agg
          WHERE alloc_ts < (SELECT 5 * width FROM span) AND freed = 0
         UNION ALL
         SELECT cache, objects, 0 FROM object_agg
          WHERE alloc_ts < (SELECT 5 * width FROM span) AND freed = 1
            AND free_ts >= (SELECT 5 * width FROM span))
        GROUP BY cache),
     m AS (
       SELECT cache, sum(live) FILTER (WHERE p = 4) AS live_half,
              sum(live) FILTER (WHERE p = 9) AS live_end, sum(rose) FILTER (WHERE p > 4) AS rises
         FROM step GROUP BY cache)
SELECT c.name AS cache, m.live_half, m.live_end,
       round(1.0 * (m.live_end - m.live_half) / m.live_end, 4) AS growth, m.rises,
       round(1.0 * o.kept / nullif(o.objects, 0), 4) AS kept,
       round((m.live_end - m.live_half) / (5e-9 * (SELECT width FROM span)), 1) AS objs_per_s,
       round(c.object_size * (m.live_end - m.live_half) / (5e-9 * (SELECT width FROM span)), 1) AS bytes_per_s,
       CASE WHEN m.live_end - m.live_half >= :growth * m.live_end AND m.rises >= :rises
                 AND coalesce(o.kept >= :kept * o.objects, 1)
                 AND m.live_end - m.live_half >= :least THEN 'leak' END AS finding
  FROM m
  JOIN cache c USING(cache)
  LEFT JOIN old o ON o.cache = m.cache
 WHERE m.live_end >= :least AND (:cache IS NULL OR c.name = :cache)
 ORDER BY growth DESC, c.name;
