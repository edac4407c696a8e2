package docs_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/troubleshooting.md has each text of an error or a warning that a user can see, and no
// other, so that a message can be looked up there.
func TestLinksBetweenErrorsAndTroubleshooting(t *testing.T) {
	const page = "docs/troubleshooting.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	inCode, onPage := errorTexts(t), map[string]int{}
	for _, block := range regexp.MustCompile("(?s)\n```text\n(.*?)```").FindAllSubmatchIndex(text, -1) {
		line := 1 + strings.Count(string(text[:block[2]]), "\n")
		for said := range strings.Lines(string(text[block[2]:block[3]])) {
			said = strings.TrimSuffix(said, "\n")
			if before := onPage[said]; before != 0 {
				t.Errorf("%s:%d: delete this line, it is also line %d: %s", page, line, before, said)
			}
			onPage[said] = line
			line++
		}
	}
	for _, said := range slices.Sorted(maps.Keys(inCode)) {
		if onPage[said] == 0 && inner[said] == "" {
			t.Errorf("%s lacks the text at %s: add this line to the block of the heading that says what to do:\n%s", page, inCode[said], said)
		}
	}
	for _, said := range slices.Sorted(maps.Keys(onPage)) {
		if inCode[said] == "" {
			t.Errorf("%s:%d: no error has this text any more: delete the line, or write there what the code says now:\n%s\nThe most similar text is that at %s", page, onPage[said], said, mostSimilar(said, inCode, onPage))
		}
	}
	for said := range inner {
		if inCode[said] == "" || onPage[said] != 0 {
			t.Errorf("%q need not be in the list of inner errors: the code lacks it, or the page has it", said)
		}
	}
	if len(inCode) < 300 {
		t.Errorf("%d texts found in the code, want 300 at least", len(inCode))
	}
}

// inner has texts that no user sees, and why.
var inner = map[string]string{
	"it is no frame": "the reader of a log skips the bytes",
	"recordstore: the record has another version":              "the step is made again",
	"recordstore: the engine refuses the request":              "the refusal that it wraps is told",
	"the server was given slots after the connection was made": "the client connects again",
	"the lock is free":                           "the step is made again",
	"the queue has changed":                      "the step is made again",
	"another part of the transaction has failed": "the part that failed is told",
	"there is no such node":                      "the step is made again",
	"the node has another version":               "the step is made again",
	"the node is there already":                  "the step is made again",
	"the node has children":                      "the error that wraps it says what to do",
}

// mostSimilar returns the text of the code that has most words in common with said, with its
// place, among those that the page lacks.
func mostSimilar(said string, inCode map[string]string, onPage map[string]int) string {
	most, similar := -1, "no place"
	for _, other := range slices.Sorted(maps.Keys(inCode)) {
		if onPage[other] != 0 || inner[other] != "" {
			continue
		}
		common := 0
		for word := range strings.FieldsSeq(other) {
			if slices.Contains(strings.Fields(said), word) {
				common++
			}
		}
		if common > most {
			most, similar = common, inCode[other]+":\n"+other
		}
	}
	return similar
}

// errorTexts returns the texts of errors and warnings in the packages that programs import and
// the command is made of, each with a place in the code. Values are replaced by "…". Texts with
// fewer than three words of their own are left out, except those of exported errors: they only
// say where another text comes from.
func errorTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if notForUsers.MatchString(filepath.ToSlash(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".lua":
			text, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?:error_reply\(|\berr = )'((?:\\.|[^'\\])*)'`).FindAllSubmatch(text, -1) {
				addText(texts, string(m[1]), path, 3)
			}
			return err
		case ".go":
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_mutants.go") {
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			textsOf(file, func(said string, at token.Pos, words int) {
				addText(texts, said, filepath.ToSlash(path)+":"+strconv.Itoa(set.Position(at).Line), words)
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// notForUsers matches folders whose texts only developers of Leasehold see.
var notForUsers = regexp.MustCompile(`^(\.git|bench|scripts|docs|internal/(testenv|proof|layering|rule)|cmd/leasehold/internal/(doctor|lab|endtoend)|store/storetest)$|/testdata$|test$`)

// textsOf calls each with the formats of errors and warnings in a file.
func textsOf(file *ast.File, each func(said string, at token.Pos, words int)) {
	add := func(e ast.Expr, words int) {
		if said, ok := literal(e); ok {
			each(said, e.Pos(), words)
		}
	}
	every := func(n ast.Node) { // every literal in n
		ast.Inspect(n, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			said, ok := literal(e)
			if ok {
				each(said, e.Pos(), 3)
			}
			return !ok
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if i, ok := formatOf[calledName(n)]; ok && len(n.Args) > i {
				add(n.Args[i], 3)
			}
		case *ast.FuncDecl:
			if n.Body != nil && explains.MatchString(n.Name.Name) {
				every(n.Body)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				switch {
				case i >= len(n.Values):
				case advises.MatchString(name.Name):
					every(n.Values[i])
				case ast.IsExported(name.Name) && strings.HasPrefix(name.Name, "Err"):
					if call, ok := n.Values[i].(*ast.CallExpr); ok && calledName(call) == "New" {
						add(call.Args[0], 1)
					}
				}
			}
		case *ast.KeyValueExpr:
			if name, ok := n.Key.(*ast.Ident); ok && advises.MatchString(name.Name) {
				every(n.Value)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				name := ""
				switch left := left.(type) {
				case *ast.Ident:
					name = left.Name
				case *ast.SelectorExpr:
					name = left.Sel.Name
				}
				if advises.MatchString(name) && len(n.Rhs) == len(n.Lhs) {
					every(n.Rhs[i])
				}
			}
		}
		return true
	})
}

// formatOf has the functions that make errors, or print errors and warnings, and which of
// their arguments is the text.
var formatOf = map[string]int{
	"Errorf": 0, "New": 0, "invalid": 0, "NewUnusable": 0, "constError": 0, "Refusal": 0,
	"error": 0, "Report": 0, "Warn": 0, "Error": 0, "WarnContext": 1, "ErrorContext": 1,
}

var (
	explains = regexp.MustCompile(`^(Error|ReasonOf|explain|Summary|Hint)$`)         // functions that word errors
	advises  = regexp.MustCompile(`(?i)^(advice.*|.*advice|why|reason|causeNames)$`) // variables and fields that do
)

// calledName returns the name of the function or method that is called.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal returns the text of a string in the code. Parts that are no literals are "…".
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		said, err := strconv.Unquote(e.Value)
		return said, e.Kind == token.STRING && err == nil
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := literal(e.X)
		right, isRight := literal(e.Y)
		return cmp.Or(left, "…") + cmp.Or(right, "…"), isLeft || isRight
	}
	return "", false
}

var (
	verb   = regexp.MustCompile(`%%|%[-+# 0]*[\d.*]*(?:\[\d+\])?[a-zT]`)
	edges  = regexp.MustCompile(`^(?:"?…"?: |: |, |; )+|(?:[:;,]? [(]?"?…"?[):]*|: |, |; )+$`)
	ownOne = regexp.MustCompile(`\pL[\pL'’]+`)
)

// addText adds a text that has enough words of its own.
func addText(texts map[string]string, said, at string, words int) {
	said = verb.ReplaceAllStringFunc(said, func(v string) string {
		switch v[len(v)-1] {
		case '%':
			return "%"
		case 'q':
			return `"…"`
		}
		return "…"
	})
	said = strings.TrimSpace(edges.ReplaceAllString(strings.ReplaceAll(said, "\n", " "), ""))
	if len(ownOne.FindAllString(said, -1)) >= words {
		texts[said] = at
	}
}
