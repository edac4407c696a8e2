package sqlstore

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// DefaultSchema is the database schema of the tables and procedures unless
// Options.Schema names another.
const DefaultSchema = "leasehold"

// SchemaVersion is the version of the tables and procedures.
const SchemaVersion = 1

// oldestVersion is the oldest version of this package that can use the tables. A
// change that older programs can live with raises only SchemaVersion.
const oldestVersion = 1

//go:embed postgresql/begin.sql
var pgBegin string

//go:embed postgresql/tables.sql
var pgTables string

//go:embed postgresql/steps.sql
var pgSteps string

//go:embed postgresql/procedures.sql
var pgProcedures string

//go:embed postgresql/end.sql
var pgEnd string

// Script returns the SQL that installs the tables and procedures of d in a schema,
// or upgrades those of an older version. An empty schema means DefaultSchema. It can
// be run any number of times, in one transaction, by a role that may create a schema.
// Nothing changes if the schema has a newer version: the script then fails.
func Script(d Dialect, schema string) (string, error) {
	if err := d.check(); err != nil {
		return "", err
	}
	schema, err := schemaName(schema)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer("@schema@", schema, "@version@", strconv.Itoa(SchemaVersion), "@oldest@", strconv.Itoa(oldestVersion)).
		Replace(pgBegin + "\n" + pgTables + "\n" + pgSteps + "\n" + pgProcedures + "\n" + pgEnd), nil
}

// GrantScript returns the SQL that gives a role the least rights that a store needs:
// to call the procedures. The role needs no right on the tables.
func GrantScript(d Dialect, schema, role string) (string, error) {
	if err := d.check(); err != nil {
		return "", err
	}
	schema, err := schemaName(schema)
	if err != nil {
		return "", err
	}
	grants, err := grantStatements(schema, role)
	if err != nil {
		return "", err
	}
	return strings.Join(grants, "\n") + "\n", nil
}

// grantStatements returns the statements of GrantScript.
func grantStatements(schema, role string) ([]string, error) {
	if role == "" || strings.ContainsRune(role, 0) {
		return nil, fmt.Errorf("%w: the role to grant rights to has no name", store.ErrInvalid)
	}
	role = `"` + strings.ReplaceAll(role, `"`, `""`) + `"`
	all := []string{fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;", schema, role)}
	for _, p := range called {
		all = append(all, fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s.%s TO %s;", schema, p, role))
	}
	return all, nil
}

// called are the procedures that a store calls.
var called = []string{"ask", "await", "release", "release_and_rejoin", "renew", "take_signal", "give_signal", "reserve", "inspect", "list", "hold", "sweep", "server"}

// Install runs Script, and GrantScript for each role, in one transaction. It blocks
// until they are done or ctx ends. Several processes may install at once.
func Install(ctx context.Context, db *sql.DB, d Dialect, schema string, roles ...string) error {
	script, err := Script(d, schema)
	if err != nil {
		return err
	}
	// Drivers refuse several statements in one call if there are arguments, and
	// some always do.
	all := statements(script)
	if schema, err = schemaName(schema); err != nil {
		return err
	}
	for _, role := range roles {
		grants, err := grantStatements(schema, role)
		if err != nil {
			return err
		}
		all = append(all, grants...)
	}
	// Each statement has to see what another process has just installed.
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return fmt.Errorf("install the lock tables: %w", err)
	}
	defer tx.Rollback() // no effect after a commit
	for _, statement := range all {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("install the lock tables: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("install the lock tables: %w", err)
	}
	return nil
}

// statements splits a script of ours at the semicolons that end its statements: not
// at those in comments and between $$.
func statements(script string) []string {
	var all []string
	var b strings.Builder
	body := false
	for line := range strings.Lines(script) {
		if !body && strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		if strings.Count(line, "$$")%2 == 1 {
			body = !body
		}
		b.WriteString(line)
		code, _, _ := strings.Cut(line, " -- ")
		if !body && strings.HasSuffix(strings.TrimSpace(code), ";") {
			all = append(all, strings.TrimSpace(b.String()))
			b.Reset()
		}
	}
	return all
}

// schemaName returns schema, or the default, if it can be used without quotes.
func schemaName(schema string) (string, error) {
	if schema == "" {
		return DefaultSchema, nil
	}
	plain := len(schema) <= 63 && (schema[0] < '0' || schema[0] > '9')
	for _, r := range []byte(schema) {
		plain = plain && (r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z')
	}
	if !plain {
		return "", fmt.Errorf("%w: the schema %q: use at most 63 lower-case letters, digits and _, and no digit first", store.ErrInvalid, schema)
	}
	return schema, nil
}
