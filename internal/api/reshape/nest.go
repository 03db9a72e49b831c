package reshape

import (
	"hash/fnv"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// listShape converts the items of lists.
type listShape struct {
	into  shaper
	lists [2]*schema.Node
}

// shape converts a list. A stash names an item by its keys, or else by the item in the version that has the stash: so
// an item that moves keeps its values, and an item that a client changes loses them.
func (l *listShape) shape(r *run, d direction, v any, stashed object.Object) (any, object.Object, error) {
	list, ok := v.([]any)
	if !ok {
		return v, nil, nil
	}
	var lost object.Object
	read, written := itemNames{list: l.lists[d]}, itemNames{list: l.lists[1-d]}
	for i, item := range list {
		var below object.Object
		if len(stashed) > 0 {
			below, _ = stashed[read.of(item)].(object.Object)
		}
		out, left, err := l.into.shape(r, d, item, below)
		if err != nil {
			return nil, nil, err
		}
		list[i] = out
		if len(left) > 0 {
			if lost == nil {
				lost = object.Object{}
			}
			lost[written.after(list[:i], out)] = left
		}
	}
	return list, lost, nil
}

// itemNames names the items of one list in a stash.
type itemNames struct {
	list *schema.Node
	seen map[string]int // how often a name was given
	next int            // the first item that is not in seen
}

// of returns the name of the next item.
func (n *itemNames) of(item any) string {
	if n.seen == nil {
		n.seen = map[string]int{}
	}
	name := n.name(item)
	count := n.seen[name]
	n.seen[name]++
	if count > 0 {
		name += "#" + strconv.Itoa(count)
	}
	return name
}

// after is of for an item after others that may have no names yet.
func (n *itemNames) after(before []any, item any) string {
	for ; n.next < len(before); n.next++ {
		n.of(before[n.next])
	}
	n.next++
	return n.of(item)
}

func (n *itemNames) name(item any) string {
	item = n.list.Items.WithDefaults(item) // a client that writes it back has them
	if m, ok := item.(object.Object); ok && n.list.ListType == "map" {
		var list []any
		for _, key := range n.list.ListMapKeys {
			list = append(list, m[key])
		}
		return string(codec.AppendJSON(nil, list))
	}
	digest := fnv.New64a()
	_, _ = digest.Write(codec.AppendJSON(nil, item))
	return "~" + strconv.FormatUint(digest.Sum64(), 36)
}

// mapShape converts the values of maps.
type mapShape struct{ into shaper }

func (s *mapShape) shape(r *run, d direction, v any, stashed object.Object) (any, object.Object, error) {
	m, ok := v.(object.Object)
	if !ok {
		return v, nil, nil
	}
	var lost object.Object
	for key, value := range m {
		below, _ := stashed[key].(object.Object)
		out, left, err := s.into.shape(r, d, value, below)
		if err != nil {
			return nil, nil, err
		}
		m[key] = out
		if len(left) > 0 {
			if lost == nil {
				lost = object.Object{}
			}
			lost[key] = left
		}
	}
	return m, lost, nil
}
