package cel

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// mostText is the size in bytes of the longest text that a call makes.
const mostText = 32 << 20

// mostElements is the number of elements of the longest list that a call makes.
const mostElements = 2_000_000

// A callCheck returns an error for a call that would take too long or too much memory, or another result in its place.
// nil allows the call.
type callCheck func(call interpreter.InterpretableCall, args []ref.Val) ref.Val

var checks = map[string]callCheck{
	"replace": checkReplace, "join": checkJoin, "format": checkFormat, "flatten": checkFlatten,
	"lists.range": checkRange, "slice": checkSlice, "reverse": checkReverse,
	"sets.contains": checkCost, "sets.intersects": checkCost, "sets.equivalent": checkCost,
	"distinct": checkCost, "sort": checkCost, "@sortByAssociatedKeys": checkCost,
}

// overCost replaces a result that costs more than an expression may. After the call, cel-go counts the cost by the size
// and ends the expression, with the error and the cost of the call itself.
type overCost struct {
	ref.Val
	size types.Int
}

var _ traits.Sizer = overCost{}

// Size implements traits.Sizer.
func (v overCost) Size() ref.Val { return v.size }

// overCostOf returns an overCost of a size.
func overCostOf(size int) ref.Val {
	return overCost{types.NewErr("operation cancelled: actual cost limit exceeded"), types.Int(size)}
}

// checkCost ends a call that costs more than an expression may. The cost does not depend on the result.
func checkCost(call interpreter.InterpretableCall, args []ref.Val) ref.Val {
	cost := callCosts{}.CallCost(call.Function(), call.OverloadID(), args, types.True)
	if cost != nil && *cost > celconfig.PerCallLimit {
		return overCostOf(1)
	}
	if strings.HasPrefix(call.Function(), "sets.") {
		// A comparison of two elements takes at most as long as a walk over one of them.
		work := elementsOf(args[0], mostElements)*int(size(args[1])) +
			elementsOf(args[1], mostElements)*int(size(args[0]))
		if work > 1<<26 {
			return types.NewErr("%s: the lists have too many elements inside their elements", call.Function())
		}
	}
	return nil
}

// checkLength ends a call that makes a list of a length: each element costs one.
func checkLength(n int) ref.Val {
	if n > celconfig.PerCallLimit {
		return overCostOf(n)
	}
	return nil
}

func checkReverse(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	return checkLength(int(size(args[0])))
}

func checkRange(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	n, _ := args[0].(types.Int)
	return checkLength(int(n))
}

func checkSlice(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	if len(args) == 3 {
		from, ok := args[1].(types.Int)
		to, too := args[2].(types.Int)
		if ok && too && 0 <= from && from <= to && uint64(to) <= size(args[0]) {
			return checkLength(int(to - from))
		}
	}
	return nil
}

func checkFlatten(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	if elementsOf(args[0], mostElements) > mostElements {
		return types.NewErr("flatten: the list has more than %d elements", mostElements)
	}
	return nil
}

func checkReplace(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	texts, ok := textsOf(args[:min(len(args), 3)])
	if !ok || len(texts) < 3 {
		return nil
	}
	count := strings.Count(texts[0], texts[1])
	if len(args) == 4 {
		if n, ok := args[3].(types.Int); ok && n >= 0 && int64(n) < int64(count) {
			count = int(n)
		}
	}
	return checkText("replace", len(texts[0])+count*(len(texts[2])-len(texts[1])))
}

// checkJoin ends a call that makes a text of more than ten bytes for each unit of an expression's cost.
func checkJoin(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	separator := 0
	if len(args) == 2 {
		text, _ := args[1].(types.String)
		separator = utf8.RuneCountInString(string(text))
	}
	length, n := -separator, 0
	for i := list.Iterator(); i.HasNext() == types.True && n <= mostElements; n++ {
		text, _ := i.Next().(types.String)
		length += separator + utf8.RuneCountInString(string(text))
	}
	if n > mostElements {
		return types.NewErr("join: the list has more than %d elements", mostElements)
	}
	if length > 10*(celconfig.PerCallLimit+1) {
		return overCostOf(length)
	}
	return nil
}

// checkFormat estimates the length of a formatted text: each argument is used at most once.
func checkFormat(_ interpreter.InterpretableCall, args []ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	if !ok || len(args) != 2 {
		return nil
	}
	length := len(text) + textIn(args[1], mostText)
	for rest := string(text); ; { // the precision of numbers
		_, after, found := strings.Cut(rest, "%.")
		if !found {
			break
		}
		digits := 0
		for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
			digits++
		}
		precision := 0
		for _, c := range after[:digits] {
			precision = min(10*precision+int(c-'0'), math.MaxInt32)
		}
		length += precision
		rest = after
	}
	return checkText("format", length)
}

func checkText(function string, length int) ref.Val {
	if length > mostText {
		return types.NewErr("%s: the result would be longer than %d bytes", function, mostText)
	}
	return nil
}

func textsOf(args []ref.Val) ([]string, bool) {
	var out []string
	for _, a := range args {
		text, ok := a.(types.String)
		if !ok {
			return nil, false
		}
		out = append(out, string(text))
	}
	return out, true
}

// elementsOf counts the elements of a value, with the elements inside them. It stops above most.
func elementsOf(v ref.Val, most int) int {
	list, ok := v.(traits.Lister)
	if !ok {
		m, ok := v.(traits.Mapper)
		if !ok {
			return 1
		}
		n := 1
		for i := m.Iterator(); i.HasNext() == types.True && n <= most; {
			n += 1 + elementsOf(m.Get(i.Next()), most-n)
		}
		return n
	}
	n := 1
	for i := list.Iterator(); i.HasNext() == types.True && n <= most; {
		n += elementsOf(i.Next(), most-n)
	}
	return n
}

// textIn estimates the length of a value in a formatted text. It stops above most.
func textIn(v ref.Val, most int) int {
	switch v := v.(type) {
	case types.String:
		return 2 * len(v)
	case types.Bytes:
		return 4 * len(v)
	case traits.Lister:
		n := 2
		for i := v.Iterator(); i.HasNext() == types.True && n <= most; {
			n += 2 + textIn(i.Next(), most-n)
		}
		return n
	case traits.Mapper:
		n := 2
		for i := v.Iterator(); i.HasNext() == types.True && n <= most; {
			key := i.Next()
			n += 4 + textIn(key, most-n) + textIn(v.Get(key), most-n)
		}
		return n
	}
	return 32
}

// positions find a text in another one in linear time. They return nil for other arguments.
var positions = map[string]func(args []ref.Val) ref.Val{"indexOf": indexOf, "lastIndexOf": lastIndexOf}

func indexOf(args []ref.Val) ref.Val {
	text, sub, from, ok := positionArgs(args)
	if !ok {
		return nil
	}
	at := byteOf(text, from)
	if at == len(text) {
		return types.Int(-1)
	}
	i := strings.Index(text[at:], sub)
	if i < 0 {
		return types.Int(-1)
	}
	return types.Int(from + utf8.RuneCountInString(text[at:at+i]))
}

func lastIndexOf(args []ref.Val) ref.Val {
	text, sub, from, ok := positionArgs(args)
	if !ok {
		return nil
	}
	end := len(text)
	if len(args) == 3 {
		at := byteOf(text, from)
		if at == len(text) {
			return types.Int(-1)
		}
		end = min(at+len(sub), len(text))
	}
	i := strings.LastIndex(text[:end], sub)
	if i < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(text[:i]))
}

// positionArgs returns two texts and an offset of zero or more. The second text is not empty.
func positionArgs(args []ref.Val) (text, sub string, from int, ok bool) {
	texts, ok := textsOf(args[:min(len(args), 2)])
	if !ok || len(texts) < 2 || texts[1] == "" || !utf8.ValidString(texts[0]) || !utf8.ValidString(texts[1]) {
		return "", "", 0, false
	}
	if len(args) == 3 {
		n, ok := args[2].(types.Int)
		if !ok || n < 0 {
			return "", "", 0, false
		}
		from = int(n)
	}
	return texts[0], texts[1], from, true
}

// byteOf returns the position of a rune in bytes, the length of the text if it is shorter.
func byteOf(text string, runes int) int {
	for i := range text {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(text)
}
