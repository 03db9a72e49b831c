package stage

import (
	"sync"
	"text/template"
	"text/template/parse"
)

// Functions that instrument puts into templates: at the beginning of each round of a loop, and of each call of a named
// template. Without them a loop that calls no function could not be ended.
const (
	loopStep = "_loopStep"
	callStep = "_callStep"
)

// callsMost is the largest number of calls of named templates in an execution, which also bounds their nesting.
const callsMost = 1000

// instrument has a template count its steps, and returns the names of the functions that it may call.
func instrument(t *template.Template) (used []string) {
	step, call := actions()
	w := &walker{step: step, names: map[string]bool{loopStep: true, callStep: true}}
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		w.walk(one.Root)
		one.Root.Nodes = append([]parse.Node{call}, one.Root.Nodes...)
	}
	for name := range w.names {
		used = append(used, name)
	}
	return used
}

// actions are the nodes of calls of the two functions.
var actions = sync.OnceValues(func() (step, call parse.Node) {
	t := template.Must(template.New("steps").Funcs(builtin()).Parse("{{" + loopStep + "}}{{" + callStep + "}}"))
	return t.Root.Nodes[0], t.Root.Nodes[1]
})

// walker visits the nodes of a template.
type walker struct {
	step  parse.Node
	names map[string]bool
}

func (w *walker) walk(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, one := range n.Nodes {
			w.walk(one)
		}
	case *parse.IfNode:
		w.branch(&n.BranchNode)
	case *parse.WithNode:
		w.branch(&n.BranchNode)
	case *parse.RangeNode:
		w.branch(&n.BranchNode)
		n.List.Nodes = append([]parse.Node{w.step}, n.List.Nodes...)
	case *parse.ActionNode:
		w.walk(n.Pipe)
	case *parse.TemplateNode:
		w.walk(n.Pipe)
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, c := range n.Cmds {
			for _, arg := range c.Args {
				w.walk(arg)
			}
		}
	case *parse.ChainNode:
		w.walk(n.Node)
	case *parse.IdentifierNode:
		w.names[n.Ident] = true
	}
}

func (w *walker) branch(b *parse.BranchNode) {
	w.walk(b.Pipe)
	w.walk(b.List)
	w.walk(b.ElseList)
}
