package layering

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strconv"
)

// impureImports bring in the outside world: I/O, goroutines, random numbers.
var impureImports = []string{
	"context", "crypto", "database", "io", "log", "math/rand",
	"net", "os", "runtime", "sync", "syscall", "testing",
}

// impureNames lists, by import path, functions that read the time or wait.
var impureNames = map[string][]string{
	"time":           {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Timer", "Ticker"},
	"internal/clock": {"System", "Sleep"},
}

// impurities returns where a file of a pure package is not pure.
func impurities(t tree, f file) []string {
	var wrong []string
	report := func(at token.Pos, what string) {
		wrong = append(wrong, fmt.Sprintf("%s: %s: %s is a pure package", t.fset.Position(at), what, f.pkg))
	}
	forbidden := map[string][]string{} // by the local name of the package
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err)
		}
		for _, impure := range impureImports {
			if within(imported, impure) {
				report(spec.Pos(), "imports "+imported)
			}
		}
		if own, ok := t.own(imported); ok {
			imported = own
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			report(spec.Pos(), "a dot import hides what is used of "+imported)
		}
		forbidden[local] = impureNames[imported]
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				for _, name := range forbidden[x.Name] {
					if n.Sel.Name == name {
						report(n.Pos(), "uses "+x.Name+"."+name)
					}
				}
			}
		case *ast.GoStmt:
			report(n.Pos(), "starts a goroutine")
		case *ast.ChanType:
			report(n.Pos(), "has a channel")
		case *ast.SendStmt:
			report(n.Pos(), "sends on a channel")
		case *ast.SelectStmt:
			report(n.Pos(), "waits in a select")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				report(n.Pos(), "receives from a channel")
			}
		}
		return true
	})
	return wrong
}
