-- question: Which caches reach a high-water mark and never come back from it?
-- columns: cache; peak: most objects alive at the end of one part of the recording (of those allocated in it); peak_s: when, seconds; lowest_after: fewest alive after that; at_end: alive at the end; kept: lowest_after / peak, 0..1 (near 1: a ratchet)
-- param parts=100: number of equal parts of the recording
-- param least=100: leave out caches whose peak is lower
-- example: slabtape query T ratchet
WITH span(width) AS (
       SELECT (max(ts_max) - min(ts_min)) / :parts + 1 FROM chunk),
     change(cache, bucket, n) AS (
       SELECT cache, bucket,
              sum(CASE WHEN op IN ('alloc', 'alloc_bulk', 'sheaf_alloc') THEN events
                       WHEN flags & 2 THEN 0
                       ELSE -events END)
         FROM event_agg
        WHERE bucket_ns = (SELECT width FROM span) AND flags & 16 = 0
          AND op IN ('alloc', 'alloc_bulk', 'sheaf_alloc', 'free', 'free_rcu', 'free_bulk')
        GROUP BY cache, bucket),
     level(cache, bucket, live) AS (
       SELECT cache, bucket, sum(n) OVER (PARTITION BY cache ORDER BY bucket) FROM change),
     top(cache, bucket, live) AS (
       SELECT cache, min(bucket), live FROM level l
        WHERE live = (SELECT max(live) FROM level m WHERE m.cache IS l.cache)
        GROUP BY cache)
SELECT c.name AS cache, t.live AS peak,
       round((t.bucket + (SELECT width FROM span)) / 1e9, 3) AS peak_s,
       min(l.live) AS lowest_after,
       (SELECT e.live FROM level e WHERE e.cache IS t.cache ORDER BY e.bucket DESC LIMIT 1) AS at_end,
       round(1.0 * min(l.live) / t.live, 3) AS kept
  FROM top t
  JOIN level l ON l.cache IS t.cache AND l.bucket >= t.bucket
  LEFT JOIN cache c ON c.cache = t.cache
 WHERE t.live >= :least
 GROUP BY t.cache
 ORDER BY kept DESC, peak DESC, cache;
