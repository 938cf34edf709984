-- question: Which call sites keep nearly empty slabs alive?
-- columns: run, variant, cache; site, caller: symbol, or the address, that allocated the objects; slabs: nearly empty ones (at most a quarter of their objects in use at the end) with objects of that site; objects: these objects; kept_bytes: memory of those slabs; full: mean share of their objects in use, 0..1; oldest_s: age of the oldest object at the end, seconds; example: id of one of the objects
-- param run: one run (default: all that recorded transitions)
-- param cache: name of one cache (default: all)
-- param limit=20: rows
-- needs: transition
-- example: slabtape query T pinned-slabs --param run=1
WITH held(run, cache, site, slab, n, inuse, objects, age, example) AS (
       SELECT run, cache, alloc_site, slab, count(*), min(inuse), min(objects), max(age), min(object)
         FROM pinned
        WHERE :run IS NULL OR run = :run
        GROUP BY run, cache, alloc_site, slab),
     shape(run, slab, bytes) AS MATERIALIZED (
       SELECT run, slab, 4096 << "order" FROM slab
        WHERE died_seq IS NULL AND (:run IS NULL OR run = :run))
SELECT h.run, r.variant, c.name AS cache, h.site,
       coalesce(s.symbol || printf('+0x%x', s.offset), printf('0x%x', s.address), '?') AS caller,
       count(*) AS slabs, sum(h.n) AS objects, sum(shape.bytes) AS kept_bytes,
       round(avg(1.0 * h.inuse / h.objects), 4) AS full, round(max(h.age) / 1e9, 3) AS oldest_s,
       min(h.example) AS example
  FROM held h
  JOIN shape USING(run, slab)
  JOIN run r ON r.run = h.run
  LEFT JOIN cache c ON c.cache = h.cache
  LEFT JOIN site s ON s.site = h.site
 WHERE :cache IS NULL OR c.name = :cache
 GROUP BY h.run, h.cache, h.site
 ORDER BY h.run, kept_bytes DESC, cache, h.site
 LIMIT :limit;
