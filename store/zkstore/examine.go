package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Examination is what Examine found out about an ensemble.
type Examination struct {
	// Node names the ensemble.
	Node string
	// Unusable is why no lock could be acquired, or nil.
	Unusable error
	// Servers are the servers that the URL names.
	Servers []ServerFacts
	// Known reports that what follows is known.
	Known bool
	// Voters is the number of members of the ensemble that vote, 0 if it is a server that
	// stands alone.
	Voters int
	// Tick is what the store takes the servers' tickTime for. MaxTTL is the longest TTL
	// of a lease.
	Tick, MaxTTL time.Duration
	// Open reports that anybody may change the locks.
	Open bool
	// RoundTrip is how long it took to make a node.
	RoundTrip time.Duration
}

// ServerFacts is what one server says of itself.
type ServerFacts struct {
	Addr string
	// Err is why it does not answer, or nil.
	Err error
	// Version is such as "3.8.0". It is empty if the server does not say, because its
	// 4lw.commands.whitelist has no srvr.
	Version string
	// Tick is its tickTime, 0 if its 4lw.commands.whitelist has no conf.
	Tick time.Duration
}

// LeastVersion is the oldest version of ZooKeeper that can keep locks: it has containers,
// which the servers remove when nobody uses a lock.
const LeastVersion = "3.5.1"

// TooOld reports whether a version, such as "3.4.14", is before LeastVersion. A version that
// cannot be read is not.
func TooOld(version string) bool {
	var is, least [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &is[0], &is[1], &is[2]); n < len(is) {
		return false
	}
	_, _ = fmt.Sscanf(LeastVersion, "%d.%d.%d", &least[0], &least[1], &least[2])
	return slices.Compare(is[:], least[:]) < 0
}

// Examine finds out what endangers locks in the ensemble that a URL and options name, as for Open. It tries a lock of its own. It
// blocks until all servers have answered, ctx ends or Options.Timeout has passed for each
// step.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	checked, err := parseURL(url, o)
	if err != nil {
		return Examination{}, err
	}
	e := Examination{Node: "zookeeper", Servers: make([]ServerFacts, len(checked.servers))}
	var wg sync.WaitGroup
	for i, addr := range checked.servers {
		wg.Go(func() { e.Servers[i] = factsOf(ctx, addr, checked.Timeout) })
	}
	wg.Wait()
	s, err := openEngine(ctx, &checked)
	if err != nil {
		e.Unusable = err
		return e, nil
	}
	defer s.Close()
	e.Known, e.Voters, e.Tick, e.MaxTTL = true, s.voters, s.limits.Tick, s.maxTTL
	e.Unusable = e.try(ctx, s)
	return e, nil
}

// try acquires a lock, and looks who may change it.
func (e *Examination) try(ctx context.Context, s *engine) error {
	l := store.Lease{Name: "examined by " + store.NewOwner(), Owner: store.NewOwner(), TTL: min(usualTTL, s.maxTTL)}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil { // makes what there has to be
		return err
	}
	ctx, cancel := s.timed(ctx)
	defer cancel()
	if ss, err := s.anyTree(ctx); err == nil {
		if answers, err := ss.Ask(ctx, zk.GetACL(s.o.Base)); err == nil {
			acl, _ := answers[0].ACL()
			e.Open = slices.ContainsFunc(acl, func(a zk.ACL) bool { return a.Scheme == "world" && a.Perms&^zk.PermRead != 0 })
		}
		start := time.Now()
		if _, err := ss.Prove(ctx, s.clock.Now()); err == nil {
			e.RoundTrip = time.Since(start)
		}
	}
	return s.Release(ctx, store.ReleaseRequest{Lease: l})
}

// factsOf asks a server by ZooKeeper's four-letter words.
func factsOf(ctx context.Context, addr string, timeout time.Duration) ServerFacts {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	f := ServerFacts{Addr: addr}
	text, err := askWord(ctx, addr, "srvr")
	if err != nil {
		f.Err = err
		return f
	}
	f.Version, _, _ = strings.Cut(field(text, "Zookeeper version: "), "-")
	if field(text, "Mode: ") == "" && !strings.Contains(text, "whitelist") {
		f.Err = errors.New("it serves nobody: " + cmp.Or(store.Excerpt(strings.TrimSpace(text)), "perhaps its ensemble has no majority"))
	}
	if text, err := askWord(ctx, addr, "conf"); err == nil {
		if ms, err := strconv.ParseInt(field(text, "tickTime="), 10, 32); err == nil {
			f.Tick = time.Duration(ms) * time.Millisecond
		}
	}
	return f
}

// field returns the rest of the line that begins with name.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// askWord sends a four-letter word and returns the answer.
func askWord(ctx context.Context, addr, word string) (string, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(c, 64<<10))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it has not answered: %w", ctx.Err())
	}
	return string(b), err
}
