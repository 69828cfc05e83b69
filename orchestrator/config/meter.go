package config

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxWork bounds what all expressions together may compute, in steps of some
// microseconds: nothing can stop an evaluation from outside. maxNodes
// bounds the elements of one value.
const (
	maxWork  = 400_000
	maxNodes = 50_000
)

// Costs in steps.
const (
	costTurn = 3  // of a for expression
	costCall = 30 // of a function
	perStep  = 25 // bytes of text
)

// Functions that meterBody puts into expressions; nobody can write their names.
const (
	turnFunc = "one turn"
	textFunc = "a part of a text"
)

var errSpent = errors.New("it takes too long to compute")

// meter counts the steps that are left.
type meter struct{ left int }

func (m *meter) spent() bool { return m.left < 0 }

// charge takes steps, and says whether there were enough.
func (m *meter) charge(n int) bool {
	if n < 0 || n > maxWork {
		n = maxWork + 1
	}
	m.left = max(m.left-n, -1)
	return !m.spent()
}

// meterBody makes for expressions and templates count: each turn and each
// inserted part passes through a function of ours.
func meterBody(body *hclsyntax.Body) {
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			cond := n.CondExpr
			if cond == nil {
				cond = &hclsyntax.LiteralValueExpr{Val: cty.True, SrcRange: n.SrcRange}
			}
			n.CondExpr = through(turnFunc, cond)
		case *hclsyntax.TemplateExpr:
			for i, p := range n.Parts {
				if _, ok := p.(*hclsyntax.LiteralValueExpr); !ok {
					n.Parts[i] = through(textFunc, p)
				}
			}
		}
		return nil
	})
}

func through(name string, e hclsyntax.Expression) hclsyntax.Expression {
	r := e.Range()
	return &hclsyntax.FunctionCallExpr{Name: name, Args: []hclsyntax.Expression{e}, NameRange: r, OpenParenRange: r, CloseParenRange: r}
}

// meters are the functions of meterBody. With no steps left they end loops and
// texts without a word: evaluator.value reports it once.
func (m *meter) meters() map[string]function.Function {
	any1 := []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true}}
	make1 := func(cost func(cty.Value) int, otherwise cty.Value) function.Function {
		pick := func(v cty.Value) cty.Value {
			if m.spent() {
				return otherwise
			}
			return v
		}
		return function.New(&function.Spec{
			Params: any1,
			Type: func(args []cty.Value) (cty.Type, error) {
				m.charge(cost(args[0]))
				return pick(args[0]).Type(), nil
			},
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return pick(args[0]), nil },
		})
	}
	return map[string]function.Function{
		turnFunc: make1(func(cty.Value) int { return costTurn }, cty.False),
		textFunc: make1(func(v cty.Value) int { return 1 + textLen(v)/perStep }, cty.StringVal("")),
	}
}

// metered is f, charged for what it is given and for what it may make of it.
func (m *meter) metered(name string, f function.Function) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if !m.charge(callCost(name, args)) {
				return cty.NilType, errSpent
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

func callCost(name string, args []cty.Value) int {
	items, text, longest := 0, 0, 0
	for _, a := range args {
		n, t, l := extent(a)
		items, text, longest = items+n, text+t, max(longest, l)
	}
	n := costCall + 2*items + text/perStep
	arg := func(i int) string {
		if i < len(args) && textLen(args[i]) > 0 {
			return args[i].AsString()
		}
		return ""
	}
	switch name { // what grows by a product
	case "distinct":
		n += items * items / perStep
	case "join":
		n += items * len(arg(0)) / perStep
	case "replace":
		n += strings.Count(arg(0), arg(1)) * len(arg(2)) / perStep
	case "regexreplace":
		n += len(arg(0)) * (1 + len(arg(2))) / perStep
	case "format", "formatlist":
		n += items * strings.Count(arg(0), "%") * longest / perStep
	}
	return n
}

// textLen is the length of a text in bytes, 0 for any other value.
func textLen(v cty.Value) int {
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return 0
	}
	return len(v.AsString())
}

// extent counts the elements of a value and the bytes of the texts in it.
func extent(v cty.Value) (items, text, longest int) {
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		items++
		n := textLen(v)
		text, longest = text+n, max(longest, n)
		if items > maxNodes {
			return false, errSpent
		}
		return true, nil
	})
	return items, text, longest
}
