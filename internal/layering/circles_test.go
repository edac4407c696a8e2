package layering

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	// mostMethods is how many methods a type may have. A type with more does several jobs.
	mostMethods = 25
	// mostInCircle is how many files of a package may refer to each other in a circle.
	// None of them can be understood without all others.
	mostInCircle = 7
)

// checkCircles returns which packages have too many files that refer to each other in a
// circle, and which types have too many methods.
func checkCircles(t tree) []string {
	var wrong []string
	for _, pkg := range t.packages() {
		circle := t.circle(pkg)
		if len(circle) > mostInCircle {
			wrong = append(wrong, fmt.Sprintf("%s: %d files refer to each other in a circle, the most is %d: part them into layers (%s)", pkg, len(circle), mostInCircle, strings.Join(circle, ", ")))
		}
		for name, n := range methods(t.product(pkg)) {
			if n > mostMethods {
				wrong = append(wrong, fmt.Sprintf("%s.%s: has %d methods, the most is %d: part it by its jobs", pkg, name, n, mostMethods))
			}
		}
	}
	return wrong
}

// methods counts the methods of each type.
func methods(files []*ast.File) map[string]int {
	counts := map[string]int{}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					counts[n.Name]++
				case *ast.IndexExpr:
					ast.Inspect(n.X, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok {
							counts[id.Name]++
						}
						return true
					})
					return false // not the type parameters
				}
				return true
			})
		}
	}
	return counts
}

// noImports refuses all imports. The references within a package are found without them.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// references maps each file of a package to the other files that it refers to: to a
// declaration, a method or a field.
func (t tree) references(files []*ast.File) map[string][]string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := conf.Check("p", t.fset, files, info) // only imports cause errors
	sets := map[string]map[string]bool{}
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg || !obj.Pos().IsValid() {
			continue
		}
		from, to := t.fset.Position(id.Pos()).Filename, t.fset.Position(obj.Pos()).Filename
		if from != to {
			if sets[from] == nil {
				sets[from] = map[string]bool{}
			}
			sets[from][to] = true
		}
	}
	uses := map[string][]string{}
	for from, to := range sets {
		uses[from] = slices.Sorted(maps.Keys(to))
	}
	return uses
}

// largestCircle returns the largest set of files of which each leads to each other; nil if
// no files do.
func largestCircle(uses map[string][]string) (largest []string) {
	reached := map[string]map[string]bool{}
	for from := range uses {
		seen := map[string]bool{}
		for queue := slices.Clone(uses[from]); len(queue) > 0; queue = queue[1:] {
			if at := queue[0]; !seen[at] {
				seen[at] = true
				queue = append(queue, uses[at]...)
			}
		}
		reached[from] = seen
	}
	for _, a := range slices.Sorted(maps.Keys(uses)) {
		var circle []string
		for _, b := range slices.Sorted(maps.Keys(uses)) {
			if reached[a][b] && reached[b][a] {
				circle = append(circle, b[strings.LastIndexByte(b, '/')+1:])
			}
		}
		if len(circle) > len(largest) {
			largest = circle
		}
	}
	return largest
}

// A circle of too many files, and a type of too many methods, are found by name.
func TestCirclesAndMethodsAreFound(t *testing.T) {
	changes := map[string]string{}
	for i := range mostInCircle + 1 {
		changes[fmt.Sprintf("store/c%d.go", i)] = fmt.Sprintf("package store; type t%d struct{}; func (t%d) f%d() { t%d{}.f%d() }", i, i, i, (i+1)%(mostInCircle+1), (i+1)%(mostInCircle+1))
	}
	wrong := checkWith(t, project, changes)
	if len(wrong) != 1 || !strings.Contains(wrong[0], "store: 8 files refer to each other in a circle, the most is 7") || !strings.Contains(wrong[0], "c0.go, c1.go") {
		t.Errorf("found %q, want the circle of c0.go to c7.go", wrong)
	}
	delete(changes, "store/c3.go")
	if wrong := checkWith(t, project, changes); len(wrong) != 0 {
		t.Errorf("found %q in a chain of files, want nothing", wrong)
	}
	var many strings.Builder
	many.WriteString("package store; type g[T any] struct{}\n")
	for i := range mostMethods {
		fmt.Fprintf(&many, "func (g[T]) m%d() {}\n", i)
	}
	if wrong := checkWith(t, project, map[string]string{"store/m.go": many.String()}); len(wrong) != 0 {
		t.Errorf("found %q in a type with %d methods, want nothing", wrong, mostMethods)
	}
	many.WriteString("func (*g[T]) more() {}\n")
	if wrong := checkWith(t, project, map[string]string{"store/m.go": many.String()}); len(wrong) != 1 || !strings.Contains(wrong[0], "store.g: has 26 methods, the most is 25") {
		t.Errorf("found %q, want the 26 methods of g", wrong)
	}
}
