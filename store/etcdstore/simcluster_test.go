package etcdstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	_ "unsafe" // for valCtxCh

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// valCtxCh is a channel of etcd's client that is never closed. Its watches wait for it, and time in a
// bubble stands still unless it belongs to the bubble.
//
//go:linkname valCtxCh go.etcd.io/etcd/client/v3.valCtxCh
var valCtxCh chan struct{}

// simCluster is a cluster of three members that answer what the store asks etcd. It runs in the
// time of a synctest bubble, keeps its data in memory, and does what networks and servers may do:
// it delays requests and answers and loses them, also if the caller has given up; it changes its
// leader, which begins the time of all leases again; a leader that was replaced goes on, and revokes
// leases that it takes for over; members lag, stand still and end watches; history is compacted.
type simCluster struct {
	mu      sync.Mutex
	rng     *rand.Rand
	calm    bool // nothing is delayed or lost any more
	rarely  int  // how much rarer faults are than the numbers in the code say
	rev     int64
	least   int64 // history before that is compacted
	term    uint64
	keys    map[string][]*mvccpb.KeyValue // all that they were, by revision; without a value type if deleted
	history []simEvent
	leases  map[int64]*simLease
	members []*simMember
	changed chan struct{} // closed when a member has applied more
	trace   []string
	began   time.Time
	// released are the owners whose releases have succeeded, and ghosts their places that have ended with
	// their leases, which nobody has asked to revoke.
	released map[string]bool
	ghosts   []string
}

type simEvent struct {
	rev int64
	*mvccpb.Event
}

type simLease struct {
	ttl  time.Duration
	ends time.Time
	old  time.Time // when it ends by the count of a leader that was replaced; zero: that doesn't know it
	keys map[string]bool
	asks bool // somebody has asked to revoke it
}

// simMember is one member. Its index plus one is its number.
type simMember struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedWatchServer
	etcdserverpb.UnimplementedLeaseServer
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer
	c       *simCluster
	id      uint64
	applied int64
	still   time.Time // until then it stands still
	at      *pipes
	server  *grpc.Server
}

func newSimCluster(seed uint64) *simCluster {
	c := &simCluster{
		rng: rand.New(rand.NewPCG(seed, 1)), rarely: 1, rev: 1, term: 2, keys: map[string][]*mvccpb.KeyValue{}, leases: map[int64]*simLease{}, released: map[string]bool{},
		changed: make(chan struct{}), began: time.Now(),
	}
	for i := range 3 {
		m := &simMember{c: c, id: uint64(i + 1), applied: 1, at: listen(), server: grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}))}
		etcdserverpb.RegisterKVServer(m.server, m)
		etcdserverpb.RegisterWatchServer(m.server, m)
		etcdserverpb.RegisterLeaseServer(m.server, m)
		etcdserverpb.RegisterClusterServer(m.server, m)
		etcdserverpb.RegisterMaintenanceServer(m.server, m)
		c.members = append(c.members, m)
		go func() { _ = m.server.Serve(m.at) }()
	}
	return c
}

func (c *simCluster) endpoints() (all []string) {
	for _, m := range c.members {
		all = append(all, fmt.Sprintf("member-%d:2379", m.id))
	}
	return all
}

func (c *simCluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	for i, e := range c.endpoints() {
		if e == addr {
			return c.members[i].at.dial(ctx)
		}
	}
	return nil, fmt.Errorf("no member at %s", addr)
}

func (c *simCluster) stop() {
	for _, m := range c.members {
		m.server.Stop()
	}
}

func (c *simCluster) note(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf("%9.4f r%d t%d ", time.Since(c.began).Seconds(), c.rev, c.term)+fmt.Sprintf(format, args...))
}

// notes is note for others than the cluster.
func (c *simCluster) notes(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(format, args...)
}

// chance reports whether something fails that does so in one of n cases.
func (c *simCluster) chance(n int) bool { return !c.calm && c.rng.IntN(n*c.rarely) == 0 }

func (c *simCluster) delay() time.Duration {
	switch {
	case c.chance(12):
		return time.Duration(c.rng.Int64N(int64(3 * time.Second)))
	case c.chance(3):
		return time.Duration(c.rng.Int64N(int64(100 * time.Millisecond)))
	}
	return time.Duration(c.rng.Int64N(int64(2*time.Millisecond))) + time.Microsecond
}

// fate is what becomes of a request.
type fate struct {
	before, after time.Duration
	lost          bool // it does not arrive
	silent        bool // its answer does not arrive
	fails         bool // the answer is an error of the connection
}

func (m *simMember) fate() fate {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	f := fate{before: c.delay(), after: c.delay(), lost: c.chance(40), silent: c.chance(30), fails: c.chance(60)}
	if c.chance(60) { // it comes when its caller has given up
		f.before += time.Duration(c.rng.Int64N(int64(8 * time.Second)))
	}
	f.before += max(0, time.Until(m.still))
	return f
}

// serve runs apply, which returns an answer with its header, for a request to m.
func serve[T any](ctx context.Context, m *simMember, apply func() (T, error)) (T, error) {
	type answer struct {
		r   T
		err error
	}
	f := m.fate()
	answers := make(chan answer, 1)
	go func() { // also if the caller gives up
		time.Sleep(f.before)
		if f.lost {
			return
		}
		m.c.mu.Lock()
		r, err := apply()
		rev := m.c.rev
		m.c.mu.Unlock()
		time.Sleep(f.after)
		if f.silent {
			return
		}
		if m.c.mu.Lock(); m.applied < rev {
			m.appliesLocked(rev)
		}
		m.c.mu.Unlock()
		if f.fails {
			err = status.Error(codes.Unavailable, "the connection was reset")
		}
		answers <- answer{r, err}
	}()
	select {
	case a := <-answers:
		return a.r, a.err
	case <-ctx.Done():
		var none T
		return none, status.FromContextError(ctx.Err()).Err()
	}
}

func (m *simMember) appliesLocked(rev int64) {
	m.applied = max(m.applied, rev)
	close(m.c.changed)
	m.c.changed = make(chan struct{})
}

func (m *simMember) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 7, MemberId: m.id, Revision: m.c.rev, RaftTerm: m.c.term}
}

// The store of keys. The caller holds the mutex of c in all that follows.

// now returns a key as it was at a revision, or nil.
func (c *simCluster) now(key string, rev int64) *mvccpb.KeyValue {
	var is *mvccpb.KeyValue
	for _, kv := range c.keys[key] {
		if kv.ModRevision <= rev {
			is = kv
		}
	}
	if is == nil || is.CreateRevision == 0 {
		return nil
	}
	return is
}

// among returns the keys from key to end, in order.
func (c *simCluster) among(key, end []byte, rev int64) (kvs []*mvccpb.KeyValue) {
	if len(end) == 0 {
		if kv := c.now(string(key), rev); kv != nil {
			kvs = append(kvs, kv)
		}
		return kvs
	}
	for k := range c.keys {
		if kv := c.now(k, rev); kv != nil && k >= string(key) && k < string(end) {
			kvs = append(kvs, kv)
		}
	}
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return kvs
}

func (c *simCluster) meets(is *etcdserverpb.Compare) bool {
	kvs := c.among(is.Key, is.RangeEnd, math.MaxInt64)
	if len(kvs) == 0 {
		kvs = append(kvs, &mvccpb.KeyValue{})
	}
	for _, kv := range kvs {
		var has, want int64
		switch t := is.TargetUnion.(type) {
		case *etcdserverpb.Compare_CreateRevision:
			has, want = kv.CreateRevision, t.CreateRevision
		case *etcdserverpb.Compare_ModRevision:
			has, want = kv.ModRevision, t.ModRevision
		default:
			panic("a comparison that the store does not use")
		}
		order := map[etcdserverpb.Compare_CompareResult]int{etcdserverpb.Compare_LESS: -1, etcdserverpb.Compare_EQUAL: 0, etcdserverpb.Compare_GREATER: 1}[is.Result]
		if cmp.Compare(has, want) != order {
			return false
		}
	}
	return true
}

// path chooses the operations of a transaction and of those that are nested in it, before any has changed
// anything.
type path struct {
	succeeded bool
	ops       []*etcdserverpb.RequestOp
	nested    map[int]*path
}

func (c *simCluster) path(r *etcdserverpb.TxnRequest) (*path, error) {
	p := &path{succeeded: true, ops: r.Success, nested: map[int]*path{}}
	for _, is := range r.Compare {
		p.succeeded = p.succeeded && c.meets(is)
	}
	if !p.succeeded {
		p.ops = r.Failure
	}
	for i, op := range p.ops {
		switch o := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestTxn:
			inner, err := c.path(o.RequestTxn)
			if err != nil {
				return nil, err
			}
			p.nested[i] = inner
		case *etcdserverpb.RequestOp_RequestPut:
			put := o.RequestPut
			if put.Lease != 0 && c.leases[put.Lease] == nil {
				return nil, rpctypes.ErrGRPCLeaseNotFound
			}
			if (put.IgnoreLease || put.IgnoreValue) && c.now(string(put.Key), math.MaxInt64) == nil {
				return nil, rpctypes.ErrGRPCKeyNotFound
			}
		}
	}
	return p, nil
}

func (c *simCluster) txn(r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	p, err := c.path(r)
	if err != nil {
		return nil, err
	}
	at := c.rev + 1
	answer := c.run(p, at)
	c.commits(at)
	return answer, nil
}

func (c *simCluster) run(p *path, at int64) *etcdserverpb.TxnResponse {
	answer := &etcdserverpb.TxnResponse{Succeeded: p.succeeded}
	for i, op := range p.ops {
		is := &etcdserverpb.ResponseOp{}
		switch o := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestRange:
			is.Response = &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: c.read(o.RequestRange, math.MaxInt64)}
		case *etcdserverpb.RequestOp_RequestPut:
			c.put(o.RequestPut, at)
			is.Response = &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: &etcdserverpb.PutResponse{}}
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			c.remove(string(o.RequestDeleteRange.Key), at)
			is.Response = &etcdserverpb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &etcdserverpb.DeleteRangeResponse{}}
		case *etcdserverpb.RequestOp_RequestTxn:
			is.Response = &etcdserverpb.ResponseOp_ResponseTxn{ResponseTxn: c.run(p.nested[i], at)}
		}
		answer.Responses = append(answer.Responses, is)
	}
	return answer
}

func (c *simCluster) put(r *etcdserverpb.PutRequest, at int64) {
	key := string(r.Key)
	is := &mvccpb.KeyValue{Key: r.Key, Value: r.Value, CreateRevision: at, ModRevision: at, Version: 1, Lease: r.Lease}
	if was := c.now(key, math.MaxInt64); was != nil {
		is.CreateRevision, is.Version = was.CreateRevision, was.Version+1
		if r.IgnoreValue {
			is.Value = was.Value
		}
		if r.IgnoreLease {
			is.Lease = was.Lease
		}
		if l := c.leases[was.Lease]; l != nil {
			delete(l.keys, key)
		}
	}
	if l := c.leases[is.Lease]; l != nil {
		l.keys[key] = true
	}
	c.changes(key, at, is, mvccpb.Event_PUT)
}

func (c *simCluster) remove(key string, at int64) {
	was := c.now(key, math.MaxInt64)
	if was == nil {
		return
	}
	if l := c.leases[was.Lease]; l != nil {
		delete(l.keys, key)
	}
	c.changes(key, at, &mvccpb.KeyValue{Key: []byte(key), ModRevision: at}, mvccpb.Event_DELETE)
}

func (c *simCluster) changes(key string, at int64, kv *mvccpb.KeyValue, what mvccpb.Event_EventType) {
	c.rev = at
	c.keys[key] = append(c.keys[key], kv)
	c.history = append(c.history, simEvent{at, &mvccpb.Event{Type: what, Kv: kv}})
	c.note("%v %s %s lease %x", what, key, kv.Value, kv.Lease)
}

// commits lets the members apply what the transaction at that revision has changed.
func (c *simCluster) commits(at int64) {
	if c.rev != at {
		return
	}
	for _, m := range c.members {
		time.AfterFunc(c.delay()+max(0, time.Until(m.still)), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if m.applied < at {
				m.appliesLocked(at)
			}
		})
	}
}

func (c *simCluster) read(r *etcdserverpb.RangeRequest, rev int64) *etcdserverpb.RangeResponse {
	kvs := c.among(r.Key, r.RangeEnd, rev)
	answer := &etcdserverpb.RangeResponse{Count: int64(len(kvs))}
	if r.MaxCreateRevision != 0 {
		kvs = slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool { return kv.CreateRevision > r.MaxCreateRevision })
	}
	if r.SortTarget == etcdserverpb.RangeRequest_CREATE && r.SortOrder != etcdserverpb.RangeRequest_NONE {
		slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
		if r.SortOrder == etcdserverpb.RangeRequest_DESCEND {
			slices.Reverse(kvs)
		}
	}
	if r.Limit > 0 {
		kvs = kvs[:min(len(kvs), int(r.Limit))]
	}
	answer.Kvs = kvs
	return answer
}

// Txn answers etcd's request.
func (m *simMember) Txn(ctx context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return serve(ctx, m, func() (*etcdserverpb.TxnResponse, error) {
		if len(r.Compare) == 0 && len(r.Success) > 0 && r.Success[0].GetRequestRange().GetSerializable() {
			answer := &etcdserverpb.TxnResponse{Succeeded: true, Header: m.header()}
			answer.Header.Revision = m.applied
			for _, op := range r.Success {
				answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: m.c.read(op.GetRequestRange(), m.applied)}})
			}
			return answer, nil
		}
		answer, err := m.c.txn(r)
		if err == nil {
			answer.Header = m.header()
		}
		return answer, err
	})
}

// Range answers etcd's request.
func (m *simMember) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return serve(ctx, m, func() (*etcdserverpb.RangeResponse, error) {
		answer := m.c.read(r, math.MaxInt64)
		answer.Header = m.header()
		return answer, nil
	})
}

// Put answers etcd's request.
func (m *simMember) Put(ctx context.Context, r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	return nil, status.Error(codes.Unimplemented, "the store does not use it")
}

// LeaseGrant answers etcd's request.
func (m *simMember) LeaseGrant(ctx context.Context, r *etcdserverpb.LeaseGrantRequest) (*etcdserverpb.LeaseGrantResponse, error) {
	return serve(ctx, m, func() (*etcdserverpb.LeaseGrantResponse, error) {
		id, ttl := m.c.rng.Int64N(math.MaxInt64-1)+1, time.Duration(max(2, r.TTL))*time.Second
		m.c.leases[id] = &simLease{ttl: ttl, ends: time.Now().Add(ttl), keys: map[string]bool{}}
		return &etcdserverpb.LeaseGrantResponse{Header: m.header(), ID: id, TTL: int64(ttl / time.Second)}, nil
	})
}

// LeaseRevoke answers etcd's request.
func (m *simMember) LeaseRevoke(ctx context.Context, r *etcdserverpb.LeaseRevokeRequest) (*etcdserverpb.LeaseRevokeResponse, error) {
	m.c.mu.Lock()
	if l := m.c.leases[r.ID]; l != nil {
		l.asks = true
	}
	m.c.mu.Unlock()
	return serve(ctx, m, func() (*etcdserverpb.LeaseRevokeResponse, error) {
		if m.c.leases[r.ID] == nil {
			return nil, rpctypes.ErrGRPCLeaseNotFound
		}
		m.c.revoke(r.ID, "by a client")
		return &etcdserverpb.LeaseRevokeResponse{Header: m.header()}, nil
	})
}

func (c *simCluster) revoke(id int64, why string) {
	l, at := c.leases[id], c.rev+1
	c.note("revoke lease %x %s", id, why)
	keys := slices.Sorted(func(yield func(string) bool) {
		for k := range l.keys {
			if !yield(k) {
				return
			}
		}
	})
	for _, k := range keys {
		c.remove(k, at)
	}
	delete(c.leases, id)
	c.commits(at)
}

// LeaseTimeToLive answers etcd's request.
func (m *simMember) LeaseTimeToLive(ctx context.Context, r *etcdserverpb.LeaseTimeToLiveRequest) (*etcdserverpb.LeaseTimeToLiveResponse, error) {
	return serve(ctx, m, func() (*etcdserverpb.LeaseTimeToLiveResponse, error) {
		answer := &etcdserverpb.LeaseTimeToLiveResponse{Header: m.header(), ID: r.ID, TTL: -1}
		if l := m.c.leases[r.ID]; l != nil {
			answer.TTL, answer.GrantedTTL = int64(max(0, time.Until(l.ends))/time.Second), int64(l.ttl/time.Second)
		}
		return answer, nil
	})
}

// LeaseKeepAlive answers etcd's stream.
func (m *simMember) LeaseKeepAlive(stream etcdserverpb.Lease_LeaseKeepAliveServer) error {
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := serve(stream.Context(), m, func() (*etcdserverpb.LeaseKeepAliveResponse, error) {
			answer := &etcdserverpb.LeaseKeepAliveResponse{Header: m.header(), ID: r.ID}
			if l := m.c.leases[r.ID]; l != nil && time.Now().Before(l.ends) {
				l.ends = time.Now().Add(l.ttl)
				answer.TTL = int64(l.ttl / time.Second)
			}
			return answer, nil
		})
		if err != nil {
			return err
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// MemberList answers etcd's request.
func (m *simMember) MemberList(context.Context, *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	answer := &etcdserverpb.MemberListResponse{}
	for _, o := range m.c.members {
		answer.Members = append(answer.Members, &etcdserverpb.Member{ID: o.id})
	}
	return answer, nil
}

// Status answers etcd's request.
func (m *simMember) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return &etcdserverpb.StatusResponse{Header: m.header(), Version: "3.6.15", Leader: m.c.term%3 + 1}, nil
}

// simWatch is one watch of a stream.
type simWatch struct {
	id       int64
	key, end []byte
	next     int64
	deletes  bool
}

// Watch answers etcd's stream.
func (m *simMember) Watch(stream etcdserverpb.Watch_WatchServer) error {
	requests := make(chan *etcdserverpb.WatchRequest)
	go func() {
		defer close(requests)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- r:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	var watches []*simWatch
	for ids := int64(0); ; {
		m.c.mu.Lock()
		answers, changed := m.events(&watches), m.c.changed
		still, breaks := time.Until(m.still), m.c.chance(200)
		m.c.mu.Unlock()
		if breaks {
			return status.Error(codes.Unavailable, "the stream was reset")
		}
		if still > 0 {
			time.Sleep(still)
		}
		for _, a := range answers {
			if err := stream.Send(a); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		case r, ok := <-requests:
			if !ok {
				return nil
			}
			m.c.mu.Lock()
			var answer *etcdserverpb.WatchResponse
			switch q := r.RequestUnion.(type) {
			case *etcdserverpb.WatchRequest_CreateRequest:
				w := &simWatch{id: ids, key: q.CreateRequest.Key, end: q.CreateRequest.RangeEnd, next: q.CreateRequest.StartRevision}
				ids++
				if w.next == 0 {
					w.next = m.applied + 1
				}
				w.deletes = slices.Contains(q.CreateRequest.Filters, etcdserverpb.WatchCreateRequest_NOPUT)
				watches = append(watches, w)
				answer = &etcdserverpb.WatchResponse{Header: m.header(), WatchId: w.id, Created: true}
			case *etcdserverpb.WatchRequest_CancelRequest:
				id := q.CancelRequest.WatchId
				watches = slices.DeleteFunc(watches, func(w *simWatch) bool { return w.id == id })
				answer = &etcdserverpb.WatchResponse{Header: m.header(), WatchId: id, Canceled: true}
			}
			m.c.mu.Unlock()
			if answer != nil {
				if err := stream.Send(answer); err != nil {
					return err
				}
			}
		}
	}
}

// events returns what the watches have to be told.
func (m *simMember) events(watches *[]*simWatch) (answers []*etcdserverpb.WatchResponse) {
	*watches = slices.DeleteFunc(*watches, func(w *simWatch) bool {
		if w.next <= m.c.least && w.next <= m.applied {
			answers = append(answers, &etcdserverpb.WatchResponse{Header: m.header(), WatchId: w.id, Canceled: true, CompactRevision: m.c.least + 1})
			return true
		}
		a := &etcdserverpb.WatchResponse{Header: m.header(), WatchId: w.id}
		for _, e := range m.c.history {
			key := e.Kv.Key
			among := bytes.Equal(key, w.key) || len(w.end) > 0 && bytes.Compare(key, w.key) >= 0 && bytes.Compare(key, w.end) < 0
			if e.rev >= w.next && e.rev <= m.applied && among && (!w.deletes || e.Type == mvccpb.Event_DELETE) {
				a.Events = append(a.Events, e.Event)
			}
		}
		w.next = max(w.next, m.applied+1)
		if len(a.Events) > 0 {
			a.Header.Revision = m.applied
			answers = append(answers, a)
		}
		return false
	})
	return answers
}

// live ends leases, and does what servers do by themselves, until ctx ends.
func (c *simCluster) live(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		time := time.Now()
		ids := slices.Collect(func(yield func(int64) bool) {
			for id := range c.leases {
				if !yield(id) {
					return
				}
			}
		})
		slices.Sort(ids)
		for _, id := range ids {
			switch l := c.leases[id]; {
			case time.After(l.ends) && c.rng.IntN(3) == 0:
				c.haunts(l)
				c.revoke(id, "at its end")
			case !l.old.IsZero() && time.After(l.old) && c.chance(8):
				c.revoke(id, "by a leader that was replaced")
			}
		}
		if c.chance(150) {
			c.note("another leader")
			c.term++
			for _, l := range c.leases {
				l.old, l.ends = l.ends, time.Add(l.ttl)
			}
		}
		if m := c.members[c.rng.IntN(3)]; c.chance(300) {
			m.still = time.Add(c.delay() * 2)
			c.note("member %d stands still until %v", m.id, m.still.Sub(c.began))
		}
		if c.chance(200) {
			c.least = slices.MinFunc(c.members, func(a, b *simMember) int { return cmp.Compare(a.applied, b.applied) }).applied
			c.note("compacted to %d", c.least)
		}
		c.mu.Unlock()
		clock.Sleep(ctx, 100_000_000)
	}
}

// haunts looks for places of owners that have released their locks.
func (c *simCluster) haunts(l *simLease) {
	for k := range l.keys {
		kv := c.now(k, math.MaxInt64)
		if kv == nil || strings.HasPrefix(k, "leasehold/!") {
			continue
		}
		if e := entryOf(kv); c.released[e.Owner] && !l.asks {
			c.ghosts = append(c.ghosts, fmt.Sprintf("%s of %s stays until its lease ends, after its release", k, e.Owner))
			c.note("WRONG: %s", c.ghosts[len(c.ghosts)-1])
		}
	}
}

// left returns the keys that begin with prefix.
func (c *simCluster) left(prefix string) (keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.keys {
		if kv := c.now(k, math.MaxInt64); kv != nil && strings.HasPrefix(k, prefix) {
			keys = append(keys, k+" "+string(kv.Value))
		}
	}
	slices.Sort(keys)
	return keys
}
