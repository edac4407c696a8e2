package layering

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// idioms lists what some packages do in one way only.
type idioms struct {
	// typed are packages that carry the values of other packages in type parameters. They use
	// any only as a constraint.
	typed []string
	// stores are the packages of stores. Each makes its Store in one place. A second place
	// would make a Store for some other purpose.
	stores []string
	// waits are the functions of stores that wait for a time, each with its reason. All others
	// wait for events, above all those that close a store.
	waits map[string]string
	// choices are fields that hold one of several types behind an interface, by package. The
	// code calls methods of the value, and never asks which type it is.
	choices map[string]string
	// replies are the packages in and below which error replies of Redis are known by their
	// codes. translator is the only package there that reads their text.
	replies    []string
	translator string
}

// errorCodes are the words that error replies of Redis begin with.
var errorCodes = []string{
	"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "NOSCRIPT", "WRONGTYPE", "LOADING", "WRONGPASS", "NOAUTH", "NOPERM",
	"OOM", "MISCONF", "MASTERDOWN", "BUSY", "NOREPLICAS", "EXECABORT", "UNKILLABLE", "ERR",
}

// searches are the functions of strings and bytes that find words in a text.
var searches = []string{"Contains", "HasPrefix", "HasSuffix", "Index", "Equal", "EqualFold"}

// check returns where a file that is not a test breaks an idiom.
func (r idioms) check(t tree, f file) []string {
	var wrong []string
	report := func(at token.Pos, what string) {
		wrong = append(wrong, fmt.Sprintf("%s: %s", t.fset.Position(at), what))
	}
	if matches(f.pkg, r.typed) {
		for _, at := range untyped(f.syntax) {
			report(at, "any is only a constraint here: carry the value by a type parameter")
		}
	}
	below := func(parent string) bool { return within(f.pkg, parent) }
	if slices.ContainsFunc(r.replies, below) && f.pkg != r.translator {
		for _, at := range readsReplies(f.syntax) {
			report(at, "reads the words of an error reply: give it a code in "+r.translator)
		}
	}
	if slices.ContainsFunc(r.stores, below) {
		for _, w := range timedWaits(f.syntax) {
			if name := f.pkg + "." + w.in; r.waits[name] == "" {
				report(w.at, name+" waits for a time: wait for an event, or list it in "+register)
			}
		}
	}
	if field := r.choices[f.pkg]; field != "" {
		for _, at := range tellsApart(f.syntax, field) {
			report(at, "a "+field+" is asked, not told apart: give the interface a method")
		}
	}
	return wrong
}

// checkStores returns which stores make a Store in more than one place.
func (r idioms) checkStores(t tree) []string {
	var wrong []string
	for _, pkg := range r.stores {
		var places []string
		for _, f := range t.files {
			if f.pkg != pkg || f.test {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok && isNamed(lit.Type, "Store") {
					places = append(places, t.fset.Position(lit.Pos()).String())
				}
				return true
			})
		}
		if len(places) > 1 {
			wrong = append(wrong, fmt.Sprintf("%s: makes a Store in %d places, want one: %s", pkg, len(places), strings.Join(places, ", ")))
		}
	}
	return wrong
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// untyped returns where a file says any, or interface{}, other than as a constraint.
func untyped(f *ast.File) []token.Pos {
	constraints := map[ast.Expr]bool{}
	var found []token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		var params *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncType:
			params = n.TypeParams
		case *ast.TypeSpec:
			params = n.TypeParams
		case *ast.Ident:
			if n.Name == "any" && !constraints[n] {
				found = append(found, n.Pos())
			}
		case *ast.InterfaceType:
			if len(n.Methods.List) == 0 && !constraints[n] {
				found = append(found, n.Pos())
			}
		}
		if params != nil {
			for _, p := range params.List {
				constraints[p.Type] = true
			}
		}
		return true
	})
	return found
}

// readsReplies returns where a file has a string that begins with an error code, or
// searches the text of a reply.
func readsReplies(f *ast.File) []token.Pos {
	var found []token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil {
				panic(err) // the parser has accepted it
			}
			if first, _, _ := strings.Cut(text, " "); slices.Contains(errorCodes, first) {
				found = append(found, n.Pos())
			}
		case *ast.CallExpr:
			fn, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !isNamed(fn.X, "strings") && !isNamed(fn.X, "bytes") || !slices.Contains(searches, fn.Sel.Name) {
				return true
			}
			subject := n.Args[0]
			if call, ok := subject.(*ast.CallExpr); ok {
				subject = call.Fun
			}
			if s, ok := subject.(*ast.SelectorExpr); ok && (s.Sel.Name == "Text" || s.Sel.Name == "Error") {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// timedWait is a place that waits for a time, and the function or method that it is in.
type timedWait struct {
	at token.Pos
	in string
}

// timedWaits returns where a file sleeps or has a ticker.
func timedWaits(f *ast.File) []timedWait {
	var found []timedWait
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			timed := isNamed(s.X, "time") && slices.Contains([]string{"NewTicker", "Tick", "Sleep", "After"}, s.Sel.Name)
			if timed || isNamed(s.X, "clock") && s.Sel.Name == "Sleep" {
				found = append(found, timedWait{s.Pos(), fn.Name.Name})
			}
			return true
		})
	}
	return found
}

// tellsApart returns where a file asserts, switches on or compares a field of that name.
func tellsApart(f *ast.File, field string) []token.Pos {
	isField := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == field
	}
	var found []token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr: // a type switch has one too
			if isField(n.X) {
				found = append(found, n.Pos())
			}
		case *ast.BinaryExpr:
			if isField(n.X) || isField(n.Y) {
				found = append(found, n.Pos())
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isField(n.Tag) {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}
