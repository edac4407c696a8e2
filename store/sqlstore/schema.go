package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Script returns the SQL that installs the tables and procedures of d in a schema,
// or upgrades those of an older version. An empty schema means DefaultSchema. It can
// be run any number of times, by a role that may create a schema. In PostgreSQL, run
// it in one transaction. In MySQL a schema is a database, the script is for a client
// that knows DELIMITER, and one that failed has to be run again. Nothing changes if
// the schema has a newer version: the script then fails.
func Script(d Dialect, schema string) (string, error) {
	e, err := d.engine()
	if err != nil {
		return "", err
	}
	if schema, err = schemaName(schema); err != nil {
		return "", err
	}
	return strings.NewReplacer("@schema@", schema, "@version@", strconv.Itoa(SchemaVersion), "@oldest@", strconv.Itoa(oldestVersion)).
		Replace(e.script()), nil
}

// WholeScript is Script for tools that send a script to the server as a whole, as many
// migration tools do. In MySQL it needs no DELIMITER, which only some clients know, but a
// connection that accepts several statements in one call: with go-sql-driver/mysql, one
// with multiStatements=true.
func WholeScript(d Dialect, schema string) (string, error) {
	script, err := Script(d, schema)
	if err != nil {
		return "", err
	}
	return engines[d].whole(script), nil
}

// GrantScript returns the SQL that gives a role the least rights that a store needs:
// to call the procedures. The role needs no right on the tables. In MySQL the role is
// a user: "USER" or "USER@HOST".
func GrantScript(d Dialect, schema, role string) (string, error) {
	e, err := d.engine()
	if err != nil {
		return "", err
	}
	if schema, err = schemaName(schema); err != nil {
		return "", err
	}
	grants, err := grantStatements(e, schema, role)
	if err != nil {
		return "", err
	}
	return strings.Join(grants, "\n") + "\n", nil
}

// grantStatements returns the statements of GrantScript.
func grantStatements(e engine, schema, role string) ([]string, error) {
	if role == "" || strings.ContainsRune(role, 0) {
		return nil, fmt.Errorf("%w: the role to grant rights to has no name", store.ErrInvalid)
	}
	return e.grants(schema, role)
}

// Install runs Script, and GrantScript for each role, in one session and, as far as
// the database can do that, in one transaction. It blocks until they are done or ctx
// ends. Several processes may install at once.
func Install(ctx context.Context, db *sql.DB, d Dialect, schema string, roles ...string) error {
	script, err := Script(d, schema)
	if err != nil {
		return err
	}
	if schema, err = schemaName(schema); err != nil {
		return err
	}
	// Drivers refuse several statements in one call if there are arguments, and
	// some always do.
	e := engines[d]
	all := e.statements(script)
	for _, role := range roles {
		grants, err := grantStatements(e, schema, role)
		if err != nil {
			return err
		}
		all = append(all, grants...)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("install the lock tables: %w", err)
	}
	// Each statement has to see what another process has just installed.
	_, err = inTransaction(ctx, e, conn, func() error {
		for _, statement := range all {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		discard(conn) // with what the session has locked and set
		return fmt.Errorf("install the lock tables: %w", err)
	}
	return conn.Close()
}
