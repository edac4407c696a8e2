package simredis

import (
	"maps"
	"time"
)

// Server is one server process and its data. It is not safe for concurrent use.
type Server struct {
	clock   func() time.Time
	started int64 // wall clock in seconds, as the server reports its uptime
	runID   string
	replid  string // the ID of its replication history
	replid2 string // the ID of the history before, if it was a replica once
	replica bool
	keys    keyspace
	scripts map[string]string
	edited  map[string]changed // by the hash that clients know
	conns   connections

	// Config has the settings that CONFIG GET returns. Durable servers have appendonly yes.
	Config map[string]string
	// Trouble is the code of an error reply, or empty: LOADING for commands that touch data,
	// MISCONF for those that write, OOM for those that need memory.
	Trouble string
	// Edit, if not nil, changes the text of a script before it runs, to show what a mistake in
	// it leads to. It is called once for each script.
	Edit func(text string) string
}

// changed is a script that was edited.
type changed struct{ sha, text string }

// New starts a server without data. Its clock is the machine's time of day, which may
// step. The id tells it apart from all others, and from itself after a restart.
func New(id string, clock func() time.Time) *Server {
	s := &Server{
		clock: clock, started: clock().Unix(), runID: id, replid: "r" + id, replid2: noReplication,
		keys: keyspace{data: map[string]entry{}}, scripts: map[string]string{}, edited: map[string]changed{},
		Config: map[string]string{
			"appendonly": "no", "appendfsync": "everysec", "no-appendfsync-on-rewrite": "no",
			"maxmemory": "0", "maxmemory-policy": "noeviction", "save": "",
		},
	}
	s.keys.changed = func(key string) { s.conns.invalidate(key) }
	return s
}

const noReplication = "0000000000000000000000000000000000000000"

// SetDurable sets whether the server says that it appends every write to a file before it
// replies.
func (s *Server) SetDurable(durable bool) {
	s.Config["appendonly"], s.Config["appendfsync"] = "no", "everysec"
	if durable {
		s.Config["appendonly"], s.Config["appendfsync"] = "yes", "always"
	}
}

// EndPromptly makes keys expire exactly at their time, and not a millisecond later as in Redis,
// for comparisons with a rule that does not have that millisecond.
func (s *Server) EndPromptly() { s.keys.prompt = true }

// Data is the data of a server at some time.
type Data map[string]entry

// Data returns a copy of the data of the server.
func (s *Server) Data() Data {
	d := Data{}
	for k, e := range s.keys.data {
		d[k] = e.clone()
	}
	return d
}

// Load replaces the data of the server, as a restart or a synchronization does.
func (s *Server) Load(d Data) {
	s.keys.data = map[string]entry{}
	for k, e := range d {
		s.keys.data[k] = e.clone()
	}
	s.keys.journal = nil
	s.conns.flushed()
}

// Rewind undoes the writes of the last d, which is at most Journal.
func (s *Server) Rewind(d time.Duration) (lost bool) {
	s.tick()
	return s.keys.rewind(s.keys.now.Add(-d))
}

// Follow makes the server a replica that has synchronized with a master whose
// replication id and data these are.
func (s *Server) Follow(master *Server) {
	s.Load(master.Data())
	s.replica, s.replid, s.replid2 = true, master.replid, noReplication
}

// Promote makes a replica a master again, with a replication id of its own.
func (s *Server) Promote(replid string) {
	if s.replica {
		s.replica, s.replid2, s.replid = false, s.replid, replid
	}
}

// Backdate makes the server say that it started earlier by d.
func (s *Server) Backdate(d time.Duration) { s.started -= int64(d / time.Second) }

// Value returns the value of a string key, and how long it lasts by the server's clock, or zero
// if it does not expire. It changes nothing.
func (s *Server) Value(key string) (value string, left time.Duration, ok bool) {
	e, ok := s.keys.data[key]
	now := s.clock()
	if !ok || s.keys.over(e, now) {
		return "", 0, false
	}
	if e.expires > 0 {
		left = time.UnixMilli(e.expires + 1).Sub(now)
	}
	return e.text, left, true
}

// Keys returns the names of all keys that have not expired, sorted.
func (s *Server) Keys() []string { return s.keys.names(s.clock()) }

// Fields returns the fields of a hash. They are empty if there is none at that key.
func (s *Server) Fields(key string) map[string]string {
	return maps.Clone(s.keys.data[key].hash)
}

// Scores returns the members of a sorted set. They are empty if there is none at that key.
func (s *Server) Scores(key string) map[string]float64 {
	return maps.Clone(s.keys.data[key].scores)
}

// tick reads the clock once for a command, as Redis does.
func (s *Server) tick() { s.keys.now = s.clock() }

// Script returns the text of a script that the server was sent.
func (s *Server) Script(sha string) (text string, ok bool) {
	text, ok = s.scripts[sha]
	return text, ok
}
