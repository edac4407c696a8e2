package redisadmin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// trials maps each command that locks need to a trial of it on an unused lock's key. INFO
// is always sent, and listening tries the commands that only waiters need.
var trials = map[string]func(key string) []string{
	"evalsha": func(string) []string { return []string{"EVALSHA", "0000000000000000000000000000000000000000", "0"} },
	"eval":    func(string) []string { return []string{"EVAL", "return 0", "0"} },
	"get":     func(key string) []string { return []string{"GET", key} },
	"set":     func(key string) []string { return []string{"SET", key, "doctor", "PX", "1000", "NX"} },
	"mget":    func(key string) []string { return []string{"MGET", key} },
	"pttl":    func(key string) []string { return []string{"PTTL", key} },
	"pexpire": func(key string) []string { return []string{"PEXPIRE", key, "1000"} },
	"del":     func(key string) []string { return []string{"DEL", key} },
	"rpush":   func(key string) []string { return []string{"RPUSH", key, "doctor"} },
	"lindex":  func(key string) []string { return []string{"LINDEX", key, "0"} },
	"linsert": func(key string) []string { return []string{"LINSERT", key, "BEFORE", "doctor", "doctor"} },
	"lrange":  func(key string) []string { return []string{"LRANGE", key, "0", "0"} },
	"lrem":    func(key string) []string { return []string{"LREM", key, "1", "doctor"} },
	"lpop":    func(key string) []string { return []string{"LPOP", key} },
	"hset":    func(key string) []string { return []string{"HSET", key, "doctor", "1"} },
	"hmget":   func(key string) []string { return []string{"HMGET", key, "doctor"} },
	"hgetall": func(key string) []string { return []string{"HGETALL", key} },
	"hdel":    func(key string) []string { return []string{"HDEL", key, "doctor"} },
	"zadd":    func(key string) []string { return []string{"ZADD", key, "1", "doctor"} },
	"zscore":  func(key string) []string { return []string{"ZSCORE", key, "doctor"} },
	"zrange":  func(key string) []string { return []string{"ZRANGE", key, "0", "0"} },
	"zrem":    func(key string) []string { return []string{"ZREM", key, "doctor"} },
	"time":    func(string) []string { return []string{"TIME"} },
}

// rights tries every command and every key pattern that locks need.
func (d *examiner) rights() error {
	if d.found.Server.Mode == "sentinel" {
		return nil
	}
	key := d.probe()
	var names []string
	var commands [][]byte
	for _, r := range rights {
		if try := trials[r.command]; try != nil {
			names = append(names, r.command)
			commands = append(commands, resp.Command(try(key)...))
		}
	}
	said, err := d.ask(append(commands, resp.Command("DEL", key))...)
	if err != nil {
		return err
	}
	for i, name := range names {
		if v := said[i]; v.Kind == '-' && (v.DeniesCommand() || v.Code() == resp.UnknownCommand) {
			d.lacks(Lack{Command: name, Says: store.Excerpt(string(v.Text))})
		}
	}
	return d.keyRights(key)
}

// keyRights tries the key patterns with a script that declares the keys and does nothing
// with them.
func (d *examiner) keyRights(key string) error {
	keys := []string{key, script.KeyBegin + key + script.CounterEnd, script.MarkKey, script.AloneKey}
	if d.single {
		keys = keys[:2]
	}
	patterns := ACL{Prefix: d.scope.Prefix}.patterns()
	for i, k := range keys {
		v, err := d.askFor("EVAL", "return 0", "1", k)
		if err != nil {
			return err
		}
		if v.Code() == resp.Denied && !v.DeniesCommand() {
			d.lacks(Lack{Key: patterns[i], Says: store.Excerpt(string(v.Text))})
		}
	}
	return nil
}

func (d *examiner) lacks(l Lack) { d.found.Lacking = append(d.found.Lacking, l) }

// listening tries whether clients can receive pushes: a second connection tracks the mark
// and subscribes to a channel, and the first one publishes a message there.
func (d *examiner) listening(ctx context.Context) error {
	if s := d.found.Server; s.Mode == "sentinel" || s.Replica || s.Loading {
		return nil
	}
	channel, publish, subscribe := d.channel+"-doctor", "PUBLISH", "SUBSCRIBE"
	if serves := d.scope.serves; serves != nil && sharded(d.found.Server.Version) {
		channel, publish, subscribe = script.ChannelBegin+"{"+cluster.TagIn(serves, 0)+"}-doctor", "SPUBLISH", "SSUBSCRIBE"
	}
	w, err := d.subscribe(ctx, subscribe, channel)
	if err != nil {
		d.found.PushErr = err
		return nil
	}
	defer w.Conn.Close()
	defer context.AfterFunc(ctx, func() { w.Conn.Close() })()
	said, err := d.askFor(publish, channel, "doctor")
	if err != nil {
		return err
	}
	if said.Kind == '-' {
		d.found.PushErr = resp.ErrorOf(said)
		return nil
	}
	if said.Num == 0 {
		d.found.PushErr = errNobodyListens
		return nil
	}
	w.Conn.SetReadDeadline(time.Now().Add(d.o.ConnectTimeout))
	if v, err := w.In.Next(); err != nil {
		d.found.PushErr = err
	} else if len(v.List) != 3 || string(v.List[2].Text) != "doctor" {
		d.found.PushErr = resp.Unexpected(v)
	}
	return nil
}

// subscribe opens a connection that tracks the mark and is subscribed to a channel.
func (d *examiner) subscribe(ctx context.Context, verb, channel string) (*conn.Connection, error) {
	w, said, err := conn.Login(ctx, d.addr, &d.o, resp.Command("HELLO", "3"), membership.TrackCommand, resp.Command(verb, channel))
	if err != nil {
		return nil, err
	}
	hello, tracked, subscribed := said[0], said[1], said[2]
	for _, v := range []resp.Value{hello, tracked} {
		if v.Kind == '-' && d.found.TrackingErr == nil && d.scope.serves == nil && d.sentinels == nil {
			d.found.TrackingErr = resp.ErrorOf(v)
		}
	}
	for _, v := range []resp.Value{hello, subscribed} {
		if v.Kind == '-' {
			w.Conn.Close()
			return nil, resp.ErrorOf(v)
		}
	}
	return w, nil
}

var errNobodyListens = errors.New("the server does not know the connection that subscribed: a proxy may lead to different servers")

// scripts runs every script on an unused lock.
func (d *examiner) scripts() error {
	s := d.found.Server
	if len(d.found.Lacking) > 0 || s.Mode == "sentinel" || s.Replica || s.Loading {
		return nil
	}
	r := store.Lease{Name: d.probe(), Owner: store.NewOwner(), TTL: min(10*time.Second, d.o.MaxTTL)}
	waits := r
	waits.Owner = store.NewOwnerAt(time.Now())
	guarded := r
	guarded.Owner, guarded.Require = store.NewOwner(), store.CrashSafe
	// Encode as for a store of one node, so that a lock is granted without checking the
	// mark: where there is none, checking would create one.
	alone := script.Encoder{Wall: d.wall, Fingerprint: d.membership.Fingerprint, Channel: d.channel}
	type trial struct {
		name string
		c    *script.Command
	}
	var all []trial
	try := func(name string, q driver.Question) {
		all = append(all, trial{name, alone.Encode(q, nil)})
	}
	one, two := r, r
	one.Owner, two.Owner = store.NewOwner(), store.NewOwner()
	one.Kind, two.Kind = store.Semaphore(2), store.Semaphore(2)
	try("admit", driver.Question{Op: quorum.Acquire, Lease: one})
	try("admit", driver.Question{Op: quorum.Acquire, Lease: two})
	one.TTL *= 2 // so that the renewal has to write
	try("renewHold", driver.Question{Op: quorum.Extend, Lease: one})
	try("confirmHold", driver.Question{Op: quorum.Confirm, Lease: one, Token: 1})
	all = append(all, trial{"inspect", alone.Inspect(r.Name, false)})
	try("endHold", driver.Question{Op: quorum.Release, Lease: one})
	try("endHold", driver.Question{Op: quorum.Release, Lease: two})
	try("acquire", driver.Question{Op: quorum.Acquire, Lease: r})
	try("confirm", driver.Question{Op: quorum.Confirm, Lease: r, Token: 1})
	try("extend", driver.Question{Op: quorum.Extend, Lease: r})
	try("acquire", driver.Question{Op: quorum.Acquire, Lease: waits, Waits: true})
	try("release", driver.Question{Op: quorum.Release, Lease: r, Tombstone: true, Renewed: true})
	try("release", driver.Question{Op: quorum.Release, Lease: waits, Renewed: true})
	if d.found.Mark.Found {
		try("acquire", driver.Question{Op: quorum.Acquire, Lease: guarded})
		try("heal", driver.Question{Op: quorum.Heal, Lease: guarded})
	}
	all = append(all, trial{"inspect", alone.Inspect(r.Name, false)})
	var commands [][]byte
	for _, t := range all { // by text, since the server may not know the script yet
		commands = append(commands, t.c.ByText(nil))
	}
	name := script.KeyBegin + r.Name
	commands = append(commands, resp.Command("DEL", r.Name, name+script.CounterEnd, name+script.QueueEnd, name+script.WaitsEnd, name+script.HeldEnd, name+script.EndsEnd, name+script.RanksEnd, name+script.PlaceMiddle+waits.Owner, name+script.TombstoneMiddle+r.Owner, name+script.TombstoneMiddle+waits.Owner, name+script.TombstoneMiddle+guarded.Owner))
	said, err := d.ask(commands...)
	if err != nil {
		return err
	}
	var told []string
	for i, t := range all {
		if v := said[i]; v.Kind == '-' && !slices.Contains(told, string(v.Text)) {
			told = append(told, string(v.Text))
			_, err := script.Classify(resp.ErrorOf(v))
			d.found.Failing = append(d.found.Failing, Failure{Script: t.name, Err: err})
		}
	}
	return nil
}
