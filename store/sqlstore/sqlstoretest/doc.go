// Package sqlstoretest tests store/sqlstore on real database servers.
package sqlstoretest
