-- question: Which call sites leave ever more objects behind?
-- columns: site, caller; cache; live: objects never freed; bytes: their requested bytes; intervals: how many of the parts of the recording left some behind; bytes_per_s: slope of the bytes left behind over time (least squares over the parts)
-- param parts=10: number of equal parts of the recording
-- param limit=20: rows
-- refuse: SELECT 'events were lost, so objects may only look alive: ' || sum(max(events, 1)) || ' lost events' FROM loss HAVING count(*) > 0
-- example: slabtape query T leaks
WITH span(width) AS (
       SELECT (max(ts_max) - min(ts_min)) / :parts + 1 FROM chunk),
     part(p) AS (
       SELECT 0 UNION ALL SELECT p + 1 FROM part WHERE p + 1 < :parts),
     left_behind(site, cache, p, objects, bytes) AS (
       SELECT alloc_site, cache, bucket / (SELECT width FROM span), sum(objects), sum(bytes)
         FROM object_agg
        WHERE bucket_ns = (SELECT width FROM span) AND freed = 0 AND alloc_cpu IS NOT NULL
        GROUP BY 1, 2, 3),
     who(site, cache) AS (
       SELECT DISTINCT site, cache FROM left_behind),
     growth(site, cache, p, objects, new_bytes, bytes) AS (
       SELECT w.site, w.cache, part.p, coalesce(l.objects, 0), coalesce(l.bytes, 0),
              sum(coalesce(l.bytes, 0)) OVER (PARTITION BY w.site, w.cache ORDER BY part.p)
         FROM who w CROSS JOIN part
         LEFT JOIN left_behind l ON l.site = w.site AND l.cache IS w.cache AND l.p = part.p)
SELECT g.site,
       coalesce(s.symbol || printf('+0x%x', s.offset), printf('0x%x', s.address), '?') AS caller,
       c.name AS cache, sum(g.objects) AS live, sum(g.new_bytes) AS bytes,
       sum(g.objects > 0) AS intervals,
       round((count(*) * sum(1.0 * g.p * g.bytes) - sum(g.p) * sum(1.0 * g.bytes))
             / nullif(count(*) * sum(g.p * g.p) - sum(g.p) * sum(g.p), 0)
             / (SELECT width FROM span) * 1e9, 1) AS bytes_per_s
  FROM growth g
  LEFT JOIN site s ON s.site = g.site
  LEFT JOIN cache c ON c.cache = g.cache
 GROUP BY g.site, g.cache
 ORDER BY bytes_per_s DESC, bytes DESC, g.site, g.cache
 LIMIT :limit;
