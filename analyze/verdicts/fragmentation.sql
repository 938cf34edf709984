-- question: Is memory held by nearly empty slabs (fragmentation), or are the slabs simply full of objects in use?
-- columns: run, variant, cache; slabs; live: objects handed out, those in caches of CPUs included; cached: these (NULL: not known); total: objects that the slabs have room for; used: live / total, 0..1; needed: slabs that would do; bytes: of all slabs; waste: memory of the slabs too many, of the slab memory of the run, 0..1; share: of the slab memory of the run, 0..1; pinned: objects that sit in slabs at most a quarter full (runs that recorded them)
-- data: a replay, or the state of a recorded kernel
-- loss: 0.01
-- param fragmented=0.6: published utilisations of production machines lie at 0.45 to 0.65 where fragmentation was the complaint and above 0.9 where it was cured (Gushchin 2019)
-- param full=0.9: the upper end of the same figures
-- param share=0.25: a cache that holds a quarter of all slab memory is worth a sentence although nothing is wrong
-- param waste=0.01: memory of the slabs too many, of all slab memory; less is not worth a sentence
-- param least=16: slabs; below this the slabs of the CPUs alone decide
-- text fragmentation: {cache} is fragmented on {variant}: its {slabs} slabs ({bytes:b}) hold {live} objects in use where {total} fit, {needed} slabs would do
-- text full: {cache} is simply full on {variant}: {used%} of the room in its {slabs} slabs is in use, and it has {share%} of all slab memory ({bytes:b})
-- note: full
WITH n AS (
       SELECT run, cache, sum(value) FILTER (WHERE name = 'slabs') AS slabs,
              sum(value) FILTER (WHERE name = 'objects') AS live,
              sum(value) FILTER (WHERE name = 'cached_objs') AS cached,
              sum(value) FILTER (WHERE name = 'total_objects') AS total,
              sum(value) FILTER (WHERE name = 'objs_per_slab') AS per_slab,
              coalesce(sum(value) FILTER (WHERE name = 'order'), 0) AS "order"
         FROM counter
        WHERE cpu IS NULL AND (:run IS NULL OR run = :run)
        GROUP BY run, cache),
     p AS (
       SELECT run, cache, count(*) AS objects FROM pinned
        WHERE :run IS NULL OR run = :run
        GROUP BY run, cache),
     m AS (
       SELECT n.*, n.slabs * (4096 << n."order") AS bytes, 1.0 * n.live / n.total AS used,
              (n.live + n.per_slab - 1) / n.per_slab AS needed,
              1.0 * n.slabs * (4096 << n."order")
                / sum(n.slabs * (4096 << n."order")) OVER (PARTITION BY n.run) AS share
         FROM n WHERE n.total > 0)
SELECT m.run, r.variant, c.name AS cache, m.slabs, m.live, m.cached, m.total,
       round(m.used, 4) AS used, m.needed, m.bytes,
       round(m.share * (m.slabs - m.needed) / m.slabs, 4) AS waste, round(m.share, 4) AS share,
       p.objects AS pinned,
       CASE WHEN m.used < :fragmented AND m.share * (m.slabs - m.needed) >= :waste * m.slabs
            THEN 'fragmentation'
            WHEN m.used >= :full AND m.share >= :share THEN 'full' END AS finding
  FROM m
  JOIN run r USING(run)
  JOIN cache c USING(cache)
  LEFT JOIN p ON p.run = m.run AND p.cache = m.cache
 WHERE r.mode NOT IN ('before', 'window') AND m.slabs >= :least AND (:cache IS NULL OR c.name = :cache)
 ORDER BY m.run, m.used, c.name;
