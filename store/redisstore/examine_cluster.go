package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// ClusterExamination is what ExamineCluster found out.
type ClusterExamination struct {
	// Seeds are what the servers of the URLs said, if none of them says who has which
	// slot. Nothing else is known then.
	Seeds []store.NodeOutcome
	// Masters are those that have slots, each examined as the one server of a store; in
	// the order of their slots.
	Masters []Examination
	// Unserved is how many slots no server has, of SlotsOfCluster: locks that fall
	// there can not be taken.
	Unserved int
}

// SlotsOfCluster is how many slots every cluster has.
const SlotsOfCluster = slots

// ExamineCluster is Examine for the masters of a cluster, of which urls name some
// servers as for OpenCluster.
func ExamineCluster(ctx context.Context, urls []string, o *Options, scope Scope) (ClusterExamination, error) {
	seeds, opts, err := clusterURLs(urls, o)
	if err != nil {
		return ClusterExamination{}, err
	}
	if scope, err = scope.settle(); err != nil {
		return ClusterExamination{}, err
	}
	r := newRouter(&Store{o: opts}, seeds) // never opened
	defer r.cancel()
	chart, said, err := r.ask(ctx)
	if err != nil {
		return ClusterExamination{Seeds: said}, ctx.Err()
	}
	slices.SortFunc(chart, func(a, b stretch) int { return a.first - b.first })
	e := ClusterExamination{Unserved: slots}
	has := map[string][]stretch{}
	var hosts []string
	for _, s := range chart {
		if e.Unserved -= s.last - s.first + 1; has[s.host] == nil {
			hosts = append(hosts, s.host)
		}
		has[s.host] = append(has[s.host], s)
	}
	e.Masters = make([]Examination, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			member, scope := seeds[0], scope
			member.host = host
			scope.serves = func(slot int) bool {
				return slices.ContainsFunc(has[host], func(s stretch) bool { return s.first <= slot && slot <= s.last })
			}
			e.Masters[i] = examineAll(ctx, []address{member}, nil, lists{}, opts, scope, time.Now)
		})
	}
	all.Wait()
	return e, ctx.Err()
}

// sharded says whether a version knows sharded channels.
func sharded(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 7
}
