package sqlguard

import (
	"fmt"
	"strconv"
	"strings"
)

// Dialect is a kind of database. The zero value is not valid.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1
	MySQL              // and MariaDB
	SQLite
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("dialect %d", uint8(d))
}

func (d Dialect) check() error {
	if d < PostgreSQL || d > SQLite {
		return fmt.Errorf("%w: %s: use PostgreSQL, MySQL or SQLite", ErrInvalid, d)
	}
	return nil
}

// mark returns the placeholder of the n-th argument, counted from 1.
func (d Dialect) mark(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// identifier returns an error unless name can be used in a statement without
// quotes. Quoting would change its meaning in some databases.
func identifier(name string) error {
	for part := range strings.SplitSeq(name, ".") {
		plain := part != "" && (part[0] < '0' || part[0] > '9')
		for _, r := range []byte(part) {
			plain = plain && (r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
		}
		if !plain {
			return fmt.Errorf("%w: %q cannot be the name of a table or column here: letters, digits and _ only, with dots between schema and table", ErrInvalid, name)
		}
	}
	return nil
}

// statements are the SQL for the guard's table of tokens.
type statements struct {
	create string // makes the table, unless it is there
	probe  string // works if the table is there
	// raise writes the larger of the stored and the offered token. This locks the
	// row, or the key of a row that does not exist yet, until the transaction
	// ends. It returns the new token if raised is empty.
	raise  string
	raised string // reads the new token if raise cannot return it
	look   string // reads it without locking
}

func (d Dialect) statements(table string) statements {
	in := strings.NewReplacer("TABLE_", table).Replace
	switch d {
	case PostgreSQL:
		return statements{
			create: in(`CREATE TABLE IF NOT EXISTS TABLE_ (resource TEXT COLLATE "C" PRIMARY KEY, token BIGINT NOT NULL)`),
			probe:  in(`SELECT token FROM TABLE_ WHERE 1 = 0`),
			raise: in(`INSERT INTO TABLE_ AS seen (resource, token) VALUES ($1, $2)
				ON CONFLICT (resource) DO UPDATE SET token = GREATEST(seen.token, EXCLUDED.token) RETURNING token`),
			look: in(`SELECT token FROM TABLE_ WHERE resource = $1`),
		}
	case MySQL:
		// Bytes, because text of MySQL takes "a" for "A" and for "a ".
		return statements{
			create: in(`CREATE TABLE IF NOT EXISTS TABLE_ (resource VARBINARY(1024) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB`),
			probe:  in(`SELECT token FROM TABLE_ WHERE 1 = 0`),
			raise: in(`INSERT INTO TABLE_ (resource, token) VALUES (?, ?)
				ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))`),
			raised: in(`SELECT token FROM TABLE_ WHERE resource = ? FOR UPDATE`),
			look:   in(`SELECT token FROM TABLE_ WHERE resource = ?`),
		}
	default: // SQLite
		return statements{
			create: in(`CREATE TABLE IF NOT EXISTS TABLE_ (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID`),
			probe:  in(`SELECT token FROM TABLE_ WHERE 1 = 0`),
			raise: in(`INSERT INTO TABLE_ (resource, token) VALUES (?, ?)
				ON CONFLICT (resource) DO UPDATE SET token = max(token, excluded.token) RETURNING token`),
			look: in(`SELECT token FROM TABLE_ WHERE resource = ?`),
		}
	}
}
