package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// aim is one figure of contention, as measured, and our aim for it if any.
type aim struct {
	what     string
	measured string
	aimed    string
	reached  bool
	judged   bool // aimed is set
}

// aims collects the figures of a run, without those that were not measured.
type aims struct {
	run     *Run
	medians map[contestKey]contested
	all     []aim
}

// aimsOf returns the figures of a run and their aims. Leasehold has its default
// settings.
func aimsOf(r *Run) []aim {
	a := &aims{run: r, medians: contestedOf(r)}
	a.compared()
	a.manyProcesses()
	a.ownNodes()
	a.byHand()
	a.postgresql()
	a.consensus()
	a.files()
	a.inside()
	a.shared()
	a.waiting()
	a.firsts()
	return a.all
}

func (a *aims) least(what string, x, aim float64) {
	a.all = append(a.all, aimOf(what, fmt.Sprintf("%.2f", x), fmt.Sprintf("at least %g", aim), x >= aim))
}

func (a *aims) most(what string, x, aim float64) {
	a.all = append(a.all, aimOf(what, fmt.Sprintf("%.2f", x), fmt.Sprintf("at most %g", aim), x <= aim))
}

func (a *aims) show(what, measured string) {
	a.all = append(a.all, aim{what: what, measured: measured})
}

func aimOf(what, measured, aimed string, reached bool) aim {
	return aim{what, measured, aimed, reached, true}
}

func (a *aims) at(scenario, kind string, processes int) (contested, bool) {
	m, ok := a.medians[contestKey{scenario, kind, processes, 1}]
	return m, ok
}

// bestPeer returns the peer with the most hand-offs per second.
func (a *aims) bestPeer(scenario string, processes int, which func(locks.Kind) bool) (best contested, ok bool) {
	for _, k := range locks.Contended {
		if m, there := a.at(scenario, k.Name, processes); there && k.Role == locks.Peer && which(k) && (!ok || m.handOffs > best.handOffs) {
			best, ok = m, true
		}
	}
	return best, ok
}

func redsyncOn(n int) func(locks.Kind) bool {
	return func(k locks.Kind) bool { return k.Module == redsyncModule && k.Nodes == n }
}

// rueidislock selects it with any number of keys: with one key, one of two
// processes sometimes starves for the whole measurement, and that would be too
// easy to beat.
func rueidislock(k locks.Kind) bool { return strings.HasPrefix(k.Name, "rueidislock") }

// redsyncModule identifies the kinds of redsync.
const redsyncModule = "github.com/go-redsync/redsync/v4"

// shared adds the turns of a semaphore beside those of a mutex that is held for as long.
func (a *aims) shared() {
	for _, size := range sizes(a.medians, Shared) {
		permits := a.medians[contestKey{Shared, "leasehold-permit-1", size[0], size[1]}]
		mutex := a.medians[contestKey{Shared, "leasehold-1", size[0], size[1]}]
		if permits.turns > 0 && mutex.turns > 0 {
			a.least(fmt.Sprintf("1 node, %s: turns, a semaphore of %d / mutex, both held for %v", contendersOf(size[0], size[1]), locks.Permits, SharedHold), permits.turns/mutex.turns, 6)
		}
	}
}

// compared adds hand-offs per second, compared with the peers.
func (a *aims) compared() {
	for _, c := range []struct {
		scenario         string
		processes, nodes int
		what             string
		than             func(locks.Kind) bool
		aim              float64
		fair             bool
	}{
		{Contended, 2, 1, "best rueidislock", rueidislock, 3, false},
		{Contended, 2, 1, "best peer", peers(1), 0, false},
		{Contended, 2, 1, "best redsync", redsyncOn(1), 0, false},
		{Contended, 16, 1, "best peer", peers(1), 2.5, true},
		{Contended, 16, 1, "best redsync", redsyncOn(1), 0, false},
		{Contended, 128, 1, "best peer", peers(1), 6, false},
		{Contended, 128, 1, "best redsync", redsyncOn(1), 0, false},
		{Contended, 2, 5, "best redsync", redsyncOn(5), 0, false},
		{Contended, 16, 5, "best redsync", redsyncOn(5), 40, false},
		{Contended, 128, 5, "best redsync", redsyncOn(5), 6, false},
		{Far, 16, 1, "best peer", peers(1), 0, false},
		{Far, 16, 5, "best redsync", redsyncOn(5), 0, false},
	} {
		us, ok := a.at(c.scenario, fmt.Sprintf("leasehold-%d", c.nodes), c.processes)
		than, too := a.bestPeer(c.scenario, c.processes, c.than)
		if !ok || !too {
			continue
		}
		where := ""
		if c.scenario == Far {
			where = ", far away"
		}
		what := fmt.Sprintf("%d processes, %s%s: hand-offs per second, Leasehold / %s (%s)", c.processes, nodes(c.nodes), where, c.what, than.label)
		x := math.Inf(1) // if the peer's lock never changed hands
		if than.handOffs > 0 || us.handOffs == 0 {
			x = us.handOffs / max(than.handOffs, 1e-9)
		}
		if c.aim > 0 {
			a.least(what, x, c.aim)
		} else {
			a.show(what, fmt.Sprintf("%.2f", x))
		}
		if c.fair {
			a.all = append(a.all, aimOf(fmt.Sprintf("%d processes, %s: fairness (of the same peer: %.3f)", c.processes, nodes(c.nodes), than.fairness),
				fmt.Sprintf("%.3f", us.fairness), fmt.Sprintf("at least %.3f", than.fairness), us.fairness >= than.fairness-0.001))
		}
	}
	a.roundTrips()
}

// roundTrips adds the time of a hand-off in round trips to distant servers.
func (a *aims) roundTrips() {
	if a.run.RoundTrip == 0 {
		return
	}
	for _, n := range []int{1, 5} {
		if us, ok := a.at(Far, fmt.Sprintf("leasehold-%d", n), 16); ok {
			a.show(fmt.Sprintf("16 processes, %s, far away: p50 of a hand-off in round trips", nodes(n)), fmt.Sprintf("%.2f", float64(us.handOffP50)/float64(a.run.RoundTrip)))
		}
	}
}

// manyProcesses adds the figures of 128 processes on one node.
func (a *aims) manyProcesses() {
	const n = 128
	us, ok := a.at(Contended, "leasehold-1", n)
	if !ok {
		return
	}
	bound := 2 * n * (us.hold + us.handOffP50)
	a.all = append(a.all, aimOf("128 processes, 1 node: longest wait", us.longestWait.Round(time.Millisecond).String(),
		"under "+bound.Round(time.Millisecond).String()+", 2 x (hold + hand-off) x 128", us.longestWait < bound))
	a.all = append(a.all, aimOf("128 processes, 1 node: fairness (Jain)", fmt.Sprintf("%.3f", us.fairness), "at least 0.99", us.fairness >= 0.99))
	a.most("128 processes, 1 node: processes without a turn", us.starved, 0)
	a.most("128 processes, 1 node: commands per hand-off", us.sentPerHandOff, 2.2)
}

// ownNodes adds the ratio of five nodes to one.
func (a *aims) ownNodes() {
	for _, n := range []int{2, 16, 128} {
		five, ok := a.at(Contended, "leasehold-5", n)
		one, too := a.at(Contended, "leasehold-1", n)
		if ok && too && one.handOffs > 0 {
			a.least(fmt.Sprintf("%d processes: hand-offs per second, 5 nodes / 1 node", n), five.handOffs/one.handOffs, 0.4)
		}
	}
}

// byHand adds the same ratios for a queue written by hand, which does the least
// that can be done, and how near Leasehold comes to it.
func (a *aims) byHand() {
	for _, n := range []int{2, 16, 128} {
		for _, on := range []int{1, 5} {
			hand, ok := a.at(Contended, fmt.Sprintf("floor-line-%d", on), n)
			if !ok || hand.handOffs == 0 {
				continue
			}
			beside := func(than string, x, y float64) {
				if y > 0 {
					a.show(fmt.Sprintf("%d processes, %s: hand-offs per second, %s", n, nodes(on), than), fmt.Sprintf("%.2f", x/y))
				}
			}
			us, _ := a.at(Contended, fmt.Sprintf("leasehold-%d", on), n)
			beside("Leasehold / a queue by hand", us.handOffs, hand.handOffs)
			if on == 1 {
				continue
			}
			redsync, _ := a.bestPeer(Contended, n, redsyncOn(on))
			beside("a queue by hand / best redsync", hand.handOffs, redsync.handOffs)
			one, _ := a.at(Contended, "floor-line-1", n)
			beside("a queue by hand / the same on 1 node", hand.handOffs, one.handOffs)
		}
	}
}

// postgresql adds the hand-offs of locks in PostgreSQL, compared with the same steps by
// hand and with the server's advisory locks.
func (a *aims) postgresql() {
	for _, n := range []int{2, 16, 64, 128} {
		for _, suffix := range []string{"", "-async"} {
			us, ok := a.at(Contended, "leasehold-postgresql"+suffix, n)
			for _, other := range []string{"floor-postgresql" + suffix, "advisory-postgresql"} {
				than, too := a.at(Contended, other, n)
				if ok && too && than.handOffs > 0 {
					a.show(fmt.Sprintf("%d processes: hand-offs per second, %s / %s", n, us.label, than.label), fmt.Sprintf("%.2f", us.handOffs/than.handOffs))
				}
			}
		}
	}
}

// consensus adds the hand-offs of locks in etcd and ZooKeeper, compared with the clients
// that come with these.
func (a *aims) consensus() {
	for _, c := range []struct {
		ours, native string
		aim          map[int]float64
	}{
		{"leasehold-etcd", "etcd", map[int]float64{2: 15, 16: 4, 64: 1.6}},
		{"leasehold-zookeeper", "zookeeper", map[int]float64{2: 1.1, 16: 1.1, 64: 1.1}},
	} {
		for _, n := range []int{2, 16, 64, 128} {
			us, ok := a.at(Contended, c.ours, n)
			than, too := a.at(Contended, c.native, n)
			if !ok || !too || than.handOffs == 0 {
				continue
			}
			what := fmt.Sprintf("%d processes: hand-offs per second, %s / %s", n, us.label, than.label)
			if x := us.handOffs / than.handOffs; c.aim[n] > 0 {
				a.least(what, x, c.aim[n])
			} else {
				a.show(what, fmt.Sprintf("%.2f", x))
			}
		}
	}
}

// files adds the hand-offs of locks in a file, and compares them with those of flock.
func (a *aims) files() {
	aims := map[int]float64{2: 3000, 16: 2000}
	for _, n := range []int{2, 16, 64, 128} {
		us, ok := a.at(Contended, "leasehold-file", n)
		if !ok {
			continue
		}
		what := fmt.Sprintf("%d processes: hand-offs per second, %s", n, us.label)
		if aim := aims[n]; aim > 0 {
			a.all = append(a.all, aimOf(what, load.Thousands(us.handOffs), "at least "+load.Thousands(aim), us.handOffs >= aim))
		} else {
			a.show(what, load.Thousands(us.handOffs))
		}
		for _, other := range []string{"gofrs-flock", "flock"} {
			if than, too := a.at(Contended, other, n); too && than.handOffs > 0 {
				a.show(fmt.Sprintf("%s / %s", what, than.label), fmt.Sprintf("%.2f", us.handOffs/than.handOffs))
			}
		}
	}
}

// longestStay is how long a process may keep the lock among its goroutines while another
// process wants it. It gives the lock up at once when the other is in the queue, which
// cannot be seen here.
const longestStay = 100 * time.Millisecond

// inside adds the figures of goroutines of one process that want the same lock.
func (a *aims) inside() {
	for _, size := range sizes(a.medians, Inside) {
		for _, n := range []int{1, 5} {
			m, ok := a.medians[contestKey{Inside, fmt.Sprintf("leasehold-%d", n), size[0], size[1]}]
			switch {
			case !ok:
			case size[0] == 1:
				a.show(fmt.Sprintf("%s, %s: turns per second", contendersOf(size[0], size[1]), nodes(n)), load.Thousands(m.turns))
			default:
				a.all = append(a.all, aimOf(fmt.Sprintf("%s, %s: the longest that one process keeps the lock", contendersOf(size[0], size[1]), nodes(n)),
					fmt.Sprintf("%v, %.0f turns", m.longestStay.Round(10*time.Microsecond), m.longestRun),
					fmt.Sprintf("at most %v", longestStay), m.longestStay <= longestStay))
			}
		}
	}
}

// waiting adds the cost of waiting. The holder and each waiting process refresh
// once in a third of the TTL at each node. A twentieth more is allowed because some
// refreshes come a little early. Keep-alives do not count.
func (a *aims) waiting() {
	for _, size := range sizes(a.medians, Waiting) {
		for _, n := range []int{1, 5} {
			m, ok := a.medians[contestKey{Waiting, fmt.Sprintf("leasehold-%d", n), size[0], size[1]}]
			if !ok {
				continue
			}
			what := fmt.Sprintf("waiting, %s, %s: ", contendersOf(size[0], size[1]), nodes(n))
			aim := 1.05 * float64((size[0]+1)*n) / (locks.TTL / 3).Seconds()
			a.all = append(a.all, aimOf(what+"commands per second", fmt.Sprintf("%.2f", m.sent), fmt.Sprintf("at most %.2f", aim), m.sent <= aim))
			a.all = append(a.all, aimOf(what+"client CPU", percent(m.clientShare), "under 1 % of one core", m.clientShare < 0.01))
		}
	}
}

// stepIn is how long the next waiter may take to notice that it is its turn.
const stepIn = 5 * time.Millisecond

// firsts adds how long the lock is idle if the first waiter is gone.
func (a *aims) firsts() {
	for _, n := range []int{1, 5} {
		kind := fmt.Sprintf("leasehold-%d", n)
		if k := afterFirstOf(a.run, kind, contend.Killed); k.times > 0 {
			what := fmt.Sprintf("the first waiter is killed, %s: time until the next one has the lock (longest of %d: %v)", nodes(n), k.times, k.longest.Round(10*time.Microsecond))
			measured := k.measured(k.median.Round(10 * time.Microsecond))
			if n == 1 {
				a.all = append(a.all, aimOf(what, measured, fmt.Sprintf("under %v", stepIn), k.median < stepIn && k.failed == 0))
			} else {
				a.show(what, measured)
			}
		}
		if h := afterFirstOf(a.run, kind, contend.Hasty); h.times > 0 {
			a.show(fmt.Sprintf("the first waiter is killed as it joins, %s: longest time until the next one has the lock", nodes(n)), h.measured(h.longest.Round(10*time.Microsecond)))
		}
		if f := afterFirstOf(a.run, kind, contend.Frozen); f.times > 0 {
			what := fmt.Sprintf("the first waiter is frozen, %s: longest time until the next one has the lock", nodes(n))
			a.all = append(a.all, aimOf(what, f.measured(f.longest.Round(time.Millisecond)),
				fmt.Sprintf("at most %v, the TTL of its place, and %v", f.ttl, stepIn), f.longest <= f.ttl+stepIn && f.failed == 0))
		}
	}
}

// measured formats the time, and the number of failures if there were any.
func (f afterFirst) measured(took time.Duration) string {
	if f.failed > 0 {
		return fmt.Sprintf("%v, but %d times no waiter got the lock", took, f.failed)
	}
	return took.String()
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// aimTable formats the figures; with aims, also our aims and whether they were
// reached.
func aimTable(all []aim, aims bool) [][]string {
	if !aims {
		rows := [][]string{{"figure", "measured"}}
		for _, a := range all {
			rows = append(rows, []string{a.what, a.measured})
		}
		return rows
	}
	rows := [][]string{{"figure", "measured", "aimed at", ""}}
	for _, a := range all {
		verdict := ""
		switch {
		case a.judged && a.reached:
			verdict = "reached"
		case a.judged:
			verdict = "**missed**"
		}
		rows = append(rows, []string{a.what, a.measured, a.aimed, verdict})
	}
	return rows
}
