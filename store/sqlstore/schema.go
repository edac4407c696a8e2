package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Script returns the SQL that makes the table of d in a schema, and changes nothing if it is
// there. An empty schema means DefaultSchema. It is run by a role that may create a schema, or that
// owns it. In MySQL a schema is a database.
func Script(d Dialect, schema string) (string, error) {
	e, err := d.engine()
	if err != nil {
		return "", err
	}
	if schema, err = schemaName(schema); err != nil {
		return "", err
	}
	return script(e.script(schema)), nil
}

func script(statements []string) string { return strings.Join(statements, ";\n") + ";\n" }

// GrantScript returns the SQL that gives a role the least rights that a store needs: to read and
// change the rows of the table. In MySQL the role is a user: "USER" or "USER@HOST".
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
	return script(grants), nil
}

// grantStatements returns the statements of GrantScript.
func grantStatements(e engine, schema, role string) ([]string, error) {
	if role == "" || strings.ContainsRune(role, 0) {
		return nil, fmt.Errorf("%w: the role to grant rights to has no name", store.ErrInvalid)
	}
	return e.grants(schema, role)
}

// Install runs Script, and GrantScript for each role. It blocks until they are done or ctx
// ends. Several processes may install at once.
func Install(ctx context.Context, db *sql.DB, d Dialect, schema string, roles ...string) error {
	e, err := d.engine()
	if err != nil {
		return err
	}
	if schema, err = schemaName(schema); err != nil {
		return err
	}
	all := e.script(schema)
	for _, role := range roles {
		grants, err := grantStatements(e, schema, role)
		if err != nil {
			return err
		}
		all = append(all, grants...)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("install the table of locks: %w", err)
	}
	defer tx.Rollback()
	for _, statement := range all {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("install the table of locks: %w", e.fault(err).explain(err))
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("install the table of locks: %w", err)
	}
	return nil
}
