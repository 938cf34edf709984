-- question: Which locks are waited for, and on which path?
-- columns: run, variant; lock, cache, node, path; acquisitions; contended: share of them that waited, 0..1; wait_ns: waited in all; share: part of the run's waiting, 0..1; mean_wait_ns: of a contended acquisition; max_wait_ns; max_queue: most waiters at once; try_failed: failed trylocks
-- param run: one run (default: all that recorded locks)
-- param limit=20: rows
-- needs: lock
-- example: slabtape query T contention --param run=1
SELECT l.run, r.variant, l.lock, c.name AS cache, l.node, l.path, l.acquisitions,
       round(1.0 * l.contended / nullif(l.acquisitions, 0), 4) AS contended, l.wait_ns,
       round(1.0 * l.wait_ns / nullif(sum(l.wait_ns) OVER (PARTITION BY l.run), 0), 4) AS share,
       round(1.0 * l.wait_ns / nullif(l.contended, 0), 1) AS mean_wait_ns, l.max_wait_ns,
       l.max_queue, l.try_failed
  FROM lock l
  JOIN run r USING(run)
  LEFT JOIN cache c ON c.cache = l.cache
 WHERE :run IS NULL OR l.run = :run
 ORDER BY l.wait_ns DESC, l.acquisitions DESC, l.run, l.lock, l.node, l.path
 LIMIT :limit;
