package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions are what expressions may call. Of the outside world they see only
// files and the environment.
func (l *loader) functions() map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"chomp": stdlib.ChompFunc, "format": guarded(stdlib.FormatFunc, checkWidths), "formatlist": guarded(stdlib.FormatListFunc, checkWidths),
		"join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc,
		"substr": stdlib.SubstrFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc, "regex": stdlib.RegexFunc, "regexreplace": stdlib.RegexReplaceFunc,
		"coalesce": stdlib.CoalesceFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc,
		"length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc,
		"reverse": stdlib.ReverseListFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc,
		"zipmap": stdlib.ZipmapFunc, "jsondecode": guarded(stdlib.JSONDecodeFunc, checkDepth), "jsonencode": stdlib.JSONEncodeFunc,
		"csvdecode": stdlib.CSVDecodeFunc, "parseint": stdlib.ParseIntFunc,
		"tonumber": to(cty.Number), "tobool": to(cty.Bool), "tostring": to(cty.String),
		"basename":   text1(func(s string) (string, error) { return filepath.Base(s), nil }),
		"dirname":    text1(func(s string) (string, error) { return filepath.Dir(s), nil }),
		"pathexpand": text1(l.expandHome),
		"file":       text1(l.fileText),
		"env":        l.envFunc(),
	}
}

// guarded is f with a check of its first argument, for inputs that would fill
// the memory or overflow the stack.
func guarded(f function.Function, check func(string) error) function.Function {
	first := func(args []cty.Value) error {
		if a := args[0]; a.IsKnown() && !a.IsNull() && a.Type() == cty.String {
			if err := check(a.AsString()); err != nil {
				return function.NewArgError(0, err)
			}
		}
		return nil
	}
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := first(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

var wideVerb = regexp.MustCompile(`%[-+ 0#]*(\[[0-9]+\])?[0-9]*\.?[0-9]{4}`)

func checkWidths(s string) error {
	if wideVerb.MatchString(s) {
		return errors.New("a width of more than 999")
	}
	return nil
}

// checkDepth bounds the nesting of JSON, whose reader is recursive.
func checkDepth(s string) error {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("nested deeper than %d", maxNesting)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

func text1(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			return cty.StringVal(s), err
		},
	})
}

func to(want cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(want),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := convert.Convert(args[0], want)
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "not a %s", want.FriendlyName())
			}
			return v, nil
		},
	})
}

// envFunc is env(name) or env(name, default).
func (l *loader) envFunc() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, "env takes a name and perhaps a default")
			}
			if s, ok := l.env(args[0].AsString()); ok {
				return cty.StringVal(s), nil
			}
			if len(args) == 2 {
				return args[1], nil
			}
			return cty.NilVal, function.NewArgErrorf(0, "the environment variable %s is not set; set it, or write env(%q, \"default\")", args[0].AsString(), args[0].AsString())
		},
	})
}

func (l *loader) expandHome(s string) (string, error) {
	if s != "~" && !strings.HasPrefix(s, "~/") {
		return s, nil
	}
	home, ok := l.env("HOME")
	if !ok {
		return "", fmt.Errorf("HOME is not set, so ~ means nothing")
	}
	return home + s[1:], nil
}

// fileText reads a regular file of bounded size; relative paths start at the
// configuration's directory.
func (l *loader) fileText(s string) (string, error) {
	path := l.absolute(s)
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	src, whole, err := readLimited(path)
	switch {
	case err != nil:
		return "", err
	case !whole || len(src) > maxValue:
		return "", fmt.Errorf("%s is larger than %d MB", path, maxValue>>20)
	case !utf8.Valid(src):
		return "", fmt.Errorf("%s is not UTF-8 text", path)
	}
	return string(src), nil
}
