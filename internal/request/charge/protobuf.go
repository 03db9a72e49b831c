package charge

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

const (
	// perGrowth is the memory of a list that grows while it is decoded, in multiples of its elements.
	perGrowth = 4
	// perField is the length, in bytes, of a field that an empty message has in JSON: "protocol":"",
	perField = 16
	// deepest is the depth of messages that Protobuf looks at. Kubernetes' decoders have no limit of their own.
	deepest = 1000
)

// Protobuf returns the weight of a protobuf message, without its envelope. t is the Go struct that it is decoded into.
// Of a message that is not well-formed it counts the elements before the fault, where the decoder stops too.
func Protobuf(data []byte, t reflect.Type) int64 {
	return perByte*int64(len(data)) + planOf(t).weigh(data, deepest)
}

// plan has the cost of a message, and its fields that hold messages or repeat.
type plan struct {
	cost   int64 // of an empty message: the Go value, its JSON, and the object that the JSON becomes
	fields map[uint64]part
}

// part is a field.
type part struct {
	each int64 // the cost of a value that is no message
	// message is the type of the field's messages; nil if it has none.
	message reflect.Type
	// value marks the field of a map, whose messages have a key and a value of type message, nil if that is a scalar.
	value bool
}

// plans has the plan of each type that was met, by reflect.Type.
var plans sync.Map

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{cost: perGrowth*int64(t.Size()) + emptyJSON(t, 3), fields: map[uint64]part{}}
	for i := range t.NumField() {
		f := t.Field(i)
		number, ok := fieldNumber(f)
		if !ok {
			continue
		}
		p.fields[number] = partOf(f.Type)
	}
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*plan)
}

// fieldNumber reads the tag that gogo's compiler writes: protobuf:"bytes,2,rep,name=containers".
func fieldNumber(f reflect.StructField) (uint64, bool) {
	parts := strings.SplitN(f.Tag.Get("protobuf"), ",", 3)
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 32)
	return number, err == nil
}

func partOf(t reflect.Type) part {
	switch t.Kind() {
	case reflect.Map:
		return part{each: perObject / 2, message: messageOf(t.Elem()), value: true}
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Uint8:
		case reflect.String:
			return part{each: perValue + perItem}
		default:
			return part{each: perValue + perGrowth*int64(t.Elem().Size()), message: messageOf(t.Elem())}
		}
	}
	return part{each: perValue, message: messageOf(t)}
}

// messageOf returns the struct that t is or points to, or nil.
func messageOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

// emptyJSON is the cost of the JSON of an empty struct, and of the object that it becomes: it has the fields without
// omitempty, and the structs in it.
func emptyJSON(t reflect.Type, depth int) int64 {
	cost := int64(perObject)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Type.Kind() == reflect.Struct && strings.Contains(options, "omitzero"):
		case f.Type.Kind() == reflect.Struct && depth > 0:
			cost += perByte*perField + emptyJSON(f.Type, depth-1)
		case !strings.Contains(options, "omitempty"):
			cost += perByte*perField + perValue
		}
	}
	return cost
}

// weigh adds up the messages in data.
func (p *plan) weigh(data []byte, depth int) int64 {
	total := p.cost
	for len(data) > 0 && depth > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return total
		}
		data = data[n:]
		f, known := p.fields[tag>>3]
		var content []byte
		switch tag & 7 {
		case 0: // a number
			if _, n = binary.Uvarint(data); n <= 0 {
				return total
			}
			data = data[n:]
		case 1: // 8 bytes
			data = data[min(8, len(data)):]
		case 2: // a text, or a message
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) {
				return total
			}
			content, data = data[n:n+int(length)], data[n+int(length):]
		case 5: // 4 bytes
			data = data[min(4, len(data)):]
		default:
			return total
		}
		switch {
		case !known:
		case f.value:
			total += f.each
			if f.message != nil {
				total += planOf(f.message).weigh(mapValue(content), depth-1)
			}
		case f.message != nil:
			total += planOf(f.message).weigh(content, depth-1)
		default:
			total += f.each
		}
	}
	return total
}

// mapValue returns the second field of an entry of a map.
func mapValue(entry []byte) (value []byte) {
	for len(entry) > 0 {
		tag, n := binary.Uvarint(entry)
		if n <= 0 || tag&7 != 2 {
			return value
		}
		length, m := binary.Uvarint(entry[n:])
		if m <= 0 || length > uint64(len(entry)-n-m) {
			return value
		}
		if tag>>3 == 2 {
			value = entry[n+m : n+m+int(length)]
		}
		entry = entry[n+m+int(length):]
	}
	return value
}

// Unknown returns the weight of a message of a type that is not known: as if it had nothing but empty messages.
func Unknown(data []byte) int64 { return int64(len(data)) * (perByte + perObject/2) }
