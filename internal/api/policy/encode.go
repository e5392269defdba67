package policy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// order says what the order of a list means.
type order int

const (
	inOrder  order = iota
	anyOrder       // lists are sets, save in free-form JSON
)

// encode returns a message in a form of its own that is the same wherever it is made; protobuf's deterministic
// marshalling promises that only within one build. Each populated field is written as its number and its value, the
// fields by number, maps by key, everything of variable length behind its length. Unknown fields are not written.
func encode(m protoreflect.Message, lists order) []byte {
	var to []byte
	if m.Descriptor().ParentFile().Package() == "google.protobuf" {
		lists = inOrder
	}
	var populated []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		populated = append(populated, f)
		return true
	})
	slices.SortFunc(populated, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, f := range populated {
		to = binary.AppendUvarint(to, uint64(f.Number()))
		to = encodeField(to, f, m.Get(f), lists)
	}
	return to
}

func encodeField(to []byte, f protoreflect.FieldDescriptor, value protoreflect.Value, lists order) []byte {
	switch {
	case f.IsMap():
		return encodeMap(to, f, value.Map(), lists)
	case f.IsList():
		items := make([][]byte, value.List().Len())
		for i := range items {
			items[i] = encodeValue(nil, f, value.List().Get(i), lists)
		}
		if lists == anyOrder {
			slices.SortFunc(items, bytes.Compare)
			items = slices.CompactFunc(items, bytes.Equal)
		}
		to = binary.AppendUvarint(to, uint64(len(items)))
		for _, item := range items {
			to = append(to, item...)
		}
		return to
	default:
		return encodeValue(to, f, value, lists)
	}
}

func encodeMap(to []byte, f protoreflect.FieldDescriptor, entries protoreflect.Map, lists order) []byte {
	keys := make([]string, 0, entries.Len())
	entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key.String())
		return true
	})
	slices.Sort(keys)
	to = binary.AppendUvarint(to, uint64(len(keys)))
	for _, key := range keys {
		to = appendSized(to, []byte(key))
		to = encodeValue(to, f.MapValue(), entries.Get(protoreflect.ValueOfString(key).MapKey()), lists)
	}
	return to
}

// encodeValue writes a single value. The policy messages have strings, numbers, booleans, enums and messages.
func encodeValue(to []byte, f protoreflect.FieldDescriptor, value protoreflect.Value, lists order) []byte {
	switch v := value.Interface().(type) {
	case protoreflect.Message:
		return appendSized(to, encode(v, lists))
	case string:
		return appendSized(to, []byte(v))
	case bool:
		if v {
			return append(to, 1)
		}
		return append(to, 0)
	case uint32:
		return binary.AppendUvarint(to, uint64(v))
	case int32:
		return binary.AppendVarint(to, int64(v))
	case protoreflect.EnumNumber:
		return binary.AppendVarint(to, int64(v))
	case float64:
		return binary.BigEndian.AppendUint64(to, math.Float64bits(v))
	default:
		// A new kind of field must not be left out of hashes without a word; the tests populate every field.
		panic("policy: no encoding for " + string(f.FullName()))
	}
}

func appendSized(to, content []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(content))), content...)
}
