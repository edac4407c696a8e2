package sqlstore

import (
	"context"
	"database/sql"
	"reflect"
)

// direct reports whether nothing is between a connection and PostgreSQL, such as a pooler: the
// number of the server's process is that which the connection was greeted with. If it cannot tell,
// it returns false.
func direct(ctx context.Context, conn *sql.Conn) bool {
	greeted := uint64(0)
	_ = conn.Raw(func(of any) error {
		v := result(reflect.ValueOf(of).MethodByName("Conn"))
		if v.IsValid() {
			v = result(v.MethodByName("PgConn"))
		}
		if v.IsValid() {
			v = result(v.MethodByName("PID"))
		}
		if v.IsValid() && v.CanUint() {
			greeted = v.Uint()
		}
		return nil
	})
	var pid uint64
	return greeted != 0 && conn.QueryRowContext(ctx, "SELECT pg_catalog.pg_backend_pid()").Scan(&pid) == nil && pid == greeted
}

// result calls a method without arguments and returns its only result, or no value if it is not such
// a method. This package imports no driver, so it looks for the methods of pgx by their names.
func result(method reflect.Value) reflect.Value {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return reflect.Value{}
	}
	return method.Call(nil)[0]
}
