-- question: How many objects does a refill get, and from where?
-- columns: run, variant, cache; source: where the objects came from; refills: number; objects: usable objects obtained; mean, least, most: objects of one refill; small: share of refills that got 1 or 2 objects, 0..1 (the 2009 diagnosis of thrashing)
-- param run: one run (default: all that recorded refills)
-- param cache: name of one cache (default: all)
-- needs: refill
-- example: slabtape query T refill-size --param run=1
SELECT f.run, r.variant, c.name AS cache, f.source, sum(f.refills) AS refills, sum(f.objects) AS objects,
       round(1.0 * sum(f.objects) / sum(f.refills), 2) AS mean, min(f.size) AS least, max(f.size) AS most,
       round(1.0 * sum(f.refills * (f.size <= 2)) / sum(f.refills), 4) AS small
  FROM refill_agg f
  JOIN run r USING(run)
  LEFT JOIN cache c ON c.cache = f.cache
 WHERE (:run IS NULL OR f.run = :run) AND (:cache IS NULL OR c.name = :cache)
 GROUP BY f.run, f.cache, f.source
 ORDER BY f.run, refills DESC, cache, f.source;
