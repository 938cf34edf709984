-- question: Which call sites allocate most?
-- columns: site, caller: symbol, or the address; cache: its name; allocs: allocations; bytes: requested bytes; freed: objects that were freed again; mean_life_us: mean lifetime of those, microseconds
-- param cache: name of one cache (default: all)
-- param limit=20: rows
-- example: slabtape query T callers --param limit=10
SELECT o.alloc_site AS site,
       coalesce(s.symbol || printf('+0x%x', s.offset), printf('0x%x', s.address), '?') AS caller,
       c.name AS cache, sum(o.objects) AS allocs, sum(o.bytes) AS bytes,
       sum(o.objects * o.freed) AS freed,
       round(sum(o.lifetime_ns) / 1e3 / nullif(sum(o.objects * o.freed), 0), 1) AS mean_life_us
  FROM object_agg o
  LEFT JOIN site s ON s.site = o.alloc_site
  LEFT JOIN cache c ON c.cache = o.cache
 WHERE o.alloc_cpu IS NOT NULL AND (:cache IS NULL OR c.name = :cache)
 GROUP BY o.alloc_site, o.cache
 ORDER BY allocs DESC, site, cache
 LIMIT :limit;
