package sqlstore

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// mysql is the engine of MySQL and MariaDB.
type mysql struct{}

//go:embed mysql/begin.sql
var myBegin string

//go:embed mysql/tables.sql
var myTables string

//go:embed mysql/steps.sql
var mySteps string

//go:embed mysql/kinds.sql
var myKinds string

//go:embed mysql/procedures.sql
var myProcedures string

//go:embed mysql/end.sql
var myEnd string

func (mysql) name() string { return "MySQL" }

func (mysql) id() string { return "mysql" }

func (mysql) batches() bool { return false }

func (mysql) patient() bool { return false }

func (mysql) begin() []string {
	return []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"}
}

func (mysql) session() string { return "SELECT CONNECTION_ID()" }

func (mysql) ends() string { return "" }

// procedure implements engine: a CALL with the arguments in its text. Arguments beside
// the text would cost a round trip to prepare it, or depend on how the driver is set.
// The procedures return their columns in the order of the calls.
func (mysql) procedure(schema, name, _ string, _ int) statement {
	head := "CALL " + schema + "." + name + "("
	return func(args []any) (string, []any) {
		text := []byte(head)
		for i, arg := range args {
			if i > 0 {
				text = append(text, ',')
			}
			text = appendLiteral(text, arg)
		}
		return string(append(text, ')')), nil
	}
}

// appendLiteral appends a literal that means the same in every mode and character set
// of a session.
func appendLiteral(text []byte, arg any) []byte {
	switch v := arg.(type) {
	case []byte:
		text = append(text, "x'"...)
		return append(hex.AppendEncode(text, v), '\'')
	case string:
		return appendLiteral(text, []byte(v))
	case int64:
		return strconv.AppendInt(text, v, 10)
	case bool:
		return strconv.AppendBool(text, v)
	}
	panic(fmt.Sprintf("sqlstore: a procedure has no arguments of type %T", arg))
}

// definition is the beginning of a procedure in our scripts.
var definition = regexp.MustCompile(`(?m)^CREATE PROCEDURE @schema@\.(\w+)`)

// script implements engine. MariaDB replaces a procedure in one step. MySQL cannot:
// there the procedure is dropped first.
func (mysql) script() string {
	const clock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	all := myBegin + "\n" + myTables + "\n" + mySteps + "\n" + myKinds + "\n" + myProcedures + "\n" + myEnd
	all = definition.ReplaceAllString(all, "DROP PROCEDURE IF EXISTS @schema@./*M!100600 none */ /*!80000 `$1` */$$$$\nCREATE /*M!100600 OR REPLACE */ PROCEDURE @schema@.$1")
	return strings.ReplaceAll(all, "@clock@", clock)
}

// statements implements engine: it splits at the delimiters as the mysql client does.
func (mysql) statements(script string) []string {
	var all []string
	var b strings.Builder
	end := ";"
	for line := range strings.Lines(script) {
		code := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(code, "DELIMITER "):
			end = strings.TrimPrefix(code, "DELIMITER ")
		case b.Len() == 0 && (code == "" || strings.HasPrefix(code, "--")):
		case strings.HasSuffix(code, end):
			b.WriteString(strings.TrimSuffix(code, end))
			all = append(all, b.String())
			b.Reset()
		default:
			b.WriteString(line)
		}
	}
	return all
}

// delimiter is a line that tells a client, and not the server, where statements end.
var delimiter = regexp.MustCompile(`(?m)^DELIMITER .*\n`)

// whole implements engine. The server knows where a procedure ends.
func (mysql) whole(script string) string {
	return strings.ReplaceAll(delimiter.ReplaceAllString(script, ""), "$$", ";")
}

// grants implements engine. A role is USER or USER@HOST. Rights on single procedures
// would be lost when a procedure is replaced. Those that only procedures may call have
// the rights of their caller, so they are useless to anybody else.
func (mysql) grants(schema, role string) ([]string, error) {
	user, host := role, "%"
	if i := strings.LastIndexByte(role, '@'); i > 0 {
		user, host = role[:i], role[i+1:]
	}
	if strings.ContainsAny(role, "'\\\r\n") {
		return nil, fmt.Errorf("%w: %q: a user whose name contains a quotation mark, a backslash or a newline cannot be granted rights", store.ErrInvalid, role)
	}
	// In the name of a database, _ would stand for any character.
	return []string{fmt.Sprintf("GRANT EXECUTE ON `%s`.* TO '%s'@'%s';", strings.ReplaceAll(schema, "_", `\_`), user, host)}, nil
}
