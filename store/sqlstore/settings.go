package sqlstore

import "github.com/leasehold-dev/leasehold/store"

// Server is what a database server says about itself.
type Server struct {
	// Version is that of the lock tables, and Oldest the oldest program that can
	// use them.
	Version, Oldest int
	// ServerVersion is the server's own, such as 150018 for PostgreSQL 15.18.
	ServerVersion string
	// ReadOnly is why the server can only be read, or empty: it is a standby or a
	// replica, or transactions of the role can only read.
	ReadOnly string
	// Polled is why waiters poll, or empty: the server wakes them.
	Polled string
	// Settings is a PostgreSQLSettings or a MySQLSettings.
	Settings Settings
}

// Settings are the settings of a server that decide what survives.
type Settings interface {
	// why returns what keeps the server from being crash-safe, or an empty string.
	why() string
	// polled returns what keeps the server from waking waiters, or an empty string.
	polled() string
}

// Class returns the strongest guarantee that the server's settings allow.
func (s *Server) Class() store.Class {
	if s.Settings.why() == "" {
		return store.CrashSafe
	}
	return store.Efficiency
}
