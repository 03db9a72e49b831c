package charge

import "bytes"

// exactFrom is the estimate, in bytes, from which JSON tells the elements of a document from the text in its strings.
const exactFrom = 16 << 20

// fewNulls is the number of values of a document up to which its nulls weigh as much as other values.
const fewNulls = 100

// JSON returns the weight of a JSON document.
func JSON(data []byte) int64 {
	rough := counts{
		objects: bytes.Count(data, []byte{'{'}), lists: bytes.Count(data, []byte{'['}),
		members: bytes.Count(data, []byte{':'}), values: bytes.Count(data, []byte{','}),
	}
	if rough.values >= fewNulls {
		rough.nulls = bytes.Count(data, []byte("null"))
	}
	if w := rough.weight(len(data)); w < exactFrom {
		return w
	}
	return outside(data).weight(len(data))
}

// outside counts the elements that do not stand in strings.
func outside(data []byte) (c counts) {
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{':
			c.objects++
		case '[':
			c.lists++
		case ':':
			c.members++
		case ',':
			c.values++
		case 'n': // no other word of JSON has the letter
			c.nulls++
		case '"':
			c.strings++
			i += stringEnd(data[i+1:]) + 1
		}
	}
	return c
}

// stringEnd returns the index of the quote that ends a string, or the length of data without one.
func stringEnd(data []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return len(data)
		}
		i += n
		escapes := 0
		for escapes < i && data[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
		i++
	}
}
