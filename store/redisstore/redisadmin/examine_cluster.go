package redisadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// ClusterExamination holds what ExamineCluster found out.
type ClusterExamination struct {
	// Seeds holds the outcomes of the servers of the URLs if none of them could describe
	// the slots. The error of a server that is in no cluster matches ErrNoCluster. All
	// other fields are then zero.
	Seeds []store.NodeOutcome
	// Masters holds an examination of each master that has slots, as the only node of a
	// store, in the order of their slots.
	Masters []Examination
	// Unserved counts the slots, out of SlotsOfCluster, that no server has: locks in
	// those slots cannot be acquired.
	Unserved int
}

// ErrNoCluster means that a server is not in a cluster, or only in one in which nobody has a slot.
var ErrNoCluster = errors.New("the server is in no cluster")

// SlotsOfCluster is the number of slots of every cluster.
const SlotsOfCluster = resp.Slots

// ExamineCluster is like Examine, for the masters of a cluster. The url names some of its
// servers, as for redisstore.Open. It fails only if url or o is wrong, with
// store.ErrInvalid, or if ctx ends.
func ExamineCluster(ctx context.Context, url string, o *redisstore.Options, scope Scope) (ClusterExamination, error) {
	seeds, opts, mostTTL, err := config.ParseCluster(url, settingsOf(o))
	if err != nil {
		return ClusterExamination{}, err
	}
	if scope, err = scope.withDefaults(); err != nil {
		return ClusterExamination{}, err
	}
	ranges, said := slotMap(ctx, seeds, &opts)
	if ranges == nil {
		return ClusterExamination{Seeds: said}, ctx.Err()
	}
	slices.SortFunc(ranges, func(a, b cluster.Range) int { return a.First - b.First })
	e := ClusterExamination{Unserved: resp.Slots}
	has := map[string][]cluster.Range{}
	var hosts []string
	for _, s := range ranges {
		if e.Unserved -= s.Last - s.First + 1; has[s.Host] == nil {
			hosts = append(hosts, s.Host)
		}
		has[s.Host] = append(has[s.Host], s)
	}
	e.Masters = make([]Examination, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			member, scope := seeds[0], scope
			member.Host = host
			scope.serves = func(slot int) bool {
				return slices.ContainsFunc(has[host], func(s cluster.Range) bool { return s.First <= slot && slot <= s.Last })
			}
			e.Masters[i] = examineAll(ctx, []config.Address{member}, nil, membership.List{}, opts, scope, time.Now)
			e.Masters[i].Limited = mostTTL > 0
		})
	}
	all.Wait()
	return e, ctx.Err()
}

// slotMap asks one seed after the other for the slot map; nil if none of them has
// answered. It then returns the outcome of each.
func slotMap(ctx context.Context, seeds []config.Address, o *config.Config) ([]cluster.Range, []store.NodeOutcome) {
	var nodes []store.NodeOutcome
	for _, a := range seeds {
		if ctx.Err() != nil {
			break
		}
		ranges, err := cluster.Fetch(ctx, a, o)
		if err == nil {
			return ranges, nil
		}
		outcome, err := membership.Classify(err, o.ConnectTimeout)
		if resp.CodeOf(err) == resp.NoCluster || errors.Is(err, cluster.ErrNoSlotMap) {
			err = fmt.Errorf("%w: %w", ErrNoCluster, err)
		}
		nodes = append(nodes, store.NodeOutcome{Node: a.Host, Outcome: outcome, Err: err})
	}
	return nil, nodes
}

// sharded reports whether a server version supports sharded channels.
func sharded(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 7
}
