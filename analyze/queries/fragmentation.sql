-- question: How much of the memory in slabs is used, over time?
-- columns: run, variant; at_s: time, seconds (virtual in simulated runs); slabs; room_bytes: what the objects of all slabs could hold; used_bytes: objects handed out; cached_bytes: free objects at CPUs, in sheaves and queues; unused: share of the room that is not handed out, 0..1
-- param run: one run (default: all that recorded samples)
-- param cache: name of one cache (default: all together)
-- needs: sample
-- example: slabtape query T fragmentation --param run=1 --param cache=dentry
SELECT s.run, r.variant, round(s.ts / 1e9, 3) AS at_s, sum(s.slabs) AS slabs,
       sum(s.objects_total * c.object_size) AS room_bytes,
       sum((s.objects_inuse - s.cached_objs) * c.object_size) AS used_bytes,
       sum(s.cached_objs * c.object_size) AS cached_bytes,
       round(1 - 1.0 * sum((s.objects_inuse - s.cached_objs) * c.object_size)
                 / nullif(sum(s.objects_total * c.object_size), 0), 4) AS unused
  FROM sample s
  JOIN run r USING(run)
  JOIN cache c USING(cache)
 WHERE (:run IS NULL OR s.run = :run) AND (:cache IS NULL OR c.name = :cache)
 GROUP BY s.run, s.ts
 ORDER BY s.run, s.ts;
