package charge

import "bytes"

// perNode is the cost, in bytes, of a node of the tree that the YAML library makes, and of its conversion to JSON.
const perNode = 1200

// YAML returns the weight of a YAML document. It counts the characters that can begin a node, in strings too, so text
// of many dashes and colons weighs too much.
func YAML(data []byte) int64 {
	c := counts{objects: bytes.Count(data, []byte{'{'}), lists: bytes.Count(data, []byte{'['})}
	for _, b := range []byte(",\n:-?") {
		c.values += bytes.Count(data, []byte{b})
	}
	if c.values >= fewNulls {
		for _, null := range []string{"null", "Null", "NULL", "~"} {
			c.nulls += bytes.Count(data, []byte(null))
		}
	}
	nodes := c.values + c.objects + c.lists
	return c.weight(len(data)) + perNode*int64(nodes)
}
