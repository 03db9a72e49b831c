package codec

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"mime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// cborTag begins every CBOR document of the Kubernetes API: "self-described CBOR", RFC 8949, section 3.4.6.
const cborTag = "\xd9\xd9\xf7"

type cborKey struct{}

// WithCBOR returns a context that enables CBOR for requests and responses. It is the feature gate CBORServingAndStorage
// of Kubernetes 1.36, off by default.
func WithCBOR(ctx context.Context) context.Context { return context.WithValue(ctx, cborKey{}, true) }

func speaksCBOR(ctx context.Context) bool { return ctx.Value(cborKey{}) != nil }

// IsCBOR reports whether a body of this Content-Type is CBOR that the server accepts.
func IsCBOR(ctx context.Context, contentType string) bool {
	if !strings.HasPrefix(contentType, CBOR) || !speaksCBOR(ctx) {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == CBOR
}

// Offered returns the supported media types for error messages, in Kubernetes' order.
func Offered(ctx context.Context) []string {
	types := []string{JSON, YAML, Protobuf}
	if speaksCBOR(ctx) {
		types = append(types, CBOR)
	}
	return types
}

// UnmarshalCBOR decodes one CBOR item into a map[string]any or a typed object, by Kubernetes' rules: byte strings are
// strings, repeated keys are an error.
func UnmarshalCBOR(data []byte, into any) error { return cbor.Unmarshal(data, into) }

// DecodeCBOR is DecodeObject for a body in CBOR. Repeated fields are errors, so there are no warnings.
func DecodeCBOR(data []byte, want schema.GroupVersionKind) (map[string]any, error) {
	obj, err := decodeCBOR(data, body{original: data, want: want})
	if err != nil {
		return nil, err
	}
	apiVersion, _ := obj["apiVersion"].(string)
	if got, _ := schema.ParseGroupVersion(apiVersion); got != want.GroupVersion() {
		return nil, OtherVersion(got, want.GroupVersion())
	}
	return obj, nil
}

// DecodeTypedCBOR is DecodeTyped for a body in CBOR.
func DecodeTypedCBOR(data []byte, want schema.GroupVersionKind) (map[string]any, error) {
	return decodeCBOR(data, body{original: data, want: want, typed: true})
}

func decodeCBOR(data []byte, b body) (map[string]any, error) {
	var head metav1.TypeMeta
	var v any
	if err := cbor.Unmarshal(data, &v); err != nil {
		return nil, b.unrecognized(fmt.Errorf("unable to determine group/version/kind: %w", err))
	}
	obj, ok := v.(map[string]any)
	if !ok || !typed(obj) {
		err := cbor.Unmarshal(data, &head)
		return nil, b.unrecognized(fmt.Errorf("unable to determine group/version/kind: %w", err))
	}
	apiVersion, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, b.unrecognized(err)
	}
	if b.typed {
		whole := b.defaulted(gv.WithKind(text(obj["kind"])))
		obj["kind"], obj["apiVersion"] = whole.Kind, whole.GroupVersion().String()
	}
	if text(obj["kind"]) == "" {
		shown, err := cbor.Diagnose(data)
		if err != nil {
			return nil, b.unrecognized(err)
		}
		return nil, b.unrecognized(runtime.NewMissingKindErr(shown))
	}
	return obj, nil
}

// TaggedCBOR reports whether data is a CBOR document: it begins with the tag that kube-apiserver writes.
func TaggedCBOR(data []byte) bool { return bytes.HasPrefix(data, []byte(cborTag)) }

// ToCBOR returns the CBOR document of a JSON document.
func ToCBOR(doc []byte) ([]byte, error) {
	v, err := DecodeJSON(doc)
	if err != nil {
		return nil, err
	}
	return AppendCBOR(append(make([]byte, 0, len(doc)+len(cborTag)), cborTag...), v), nil
}

// CBORTag returns the start of a document that is written in pieces, with capacity for size more bytes.
func CBORTag(size int) []byte { return append(make([]byte, 0, len(cborTag)+size), cborTag...) }

// CBORItem returns a document without its tag, for use inside another one.
func CBORItem(doc []byte) []byte { return bytes.TrimPrefix(doc, []byte(cborTag)) }

// Heads of CBOR items, RFC 8949, section 3.1: the major type in the upper three bits.
const (
	cborUint, cborNegative, cborBytes, cborArray, cborMap = 0 << 5, 1 << 5, 2 << 5, 4 << 5, 5 << 5

	cborFalse, cborTrue, cborNull       = 0xf4, 0xf5, 0xf6
	cborHalf, cborSingle, cborDouble    = 0xf9, 0xfa, 0xfb
	cborOneByte, cborInline, cborWidest = 24, 23, 27
)

// AppendCBOR appends v, decoded JSON, as kube's encoder writes it: strings as byte strings, keys sorted by their
// encoding, floats as short as they keep their value.
func AppendCBOR(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendCBORString(dst, v)
	case map[string]any:
		if v == nil {
			return append(dst, cborNull)
		}
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			if len(a) != len(b) {
				return len(a) - len(b) // the length is encoded first
			}
			return strings.Compare(a, b)
		})
		dst = appendCBORHead(dst, cborMap, uint64(len(names)))
		for _, name := range names {
			dst = appendCBORString(dst, name)
			dst = AppendCBOR(dst, v[name])
		}
		return dst
	case []any:
		if v == nil {
			return append(dst, cborNull)
		}
		dst = appendCBORHead(dst, cborArray, uint64(len(v)))
		for _, item := range v {
			dst = AppendCBOR(dst, item)
		}
		return dst
	case int64:
		if v < 0 {
			return appendCBORHead(dst, cborNegative, uint64(-(v + 1)))
		}
		return appendCBORHead(dst, cborUint, uint64(v))
	case bool:
		if v {
			return append(dst, cborTrue)
		}
		return append(dst, cborFalse)
	case float64:
		return appendCBORFloat(dst, v)
	}
	return append(dst, cborNull)
}

func appendCBORString(dst []byte, s string) []byte {
	return append(appendCBORHead(dst, cborBytes, uint64(len(s))), s...)
}

// AppendCBORArrayHead and AppendCBORMapHead begin a list of n items and an object of n fields, each a string and a
// value.
func AppendCBORArrayHead(dst []byte, n int) []byte { return appendCBORHead(dst, cborArray, uint64(n)) }

// AppendCBORMapHead begins an object of n fields; see AppendCBORArrayHead.
func AppendCBORMapHead(dst []byte, n int) []byte { return appendCBORHead(dst, cborMap, uint64(n)) }

func appendCBORHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n <= cborInline:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|cborOneByte, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|cborWidest), n)
}

func appendCBORFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, cborNull) // JSON cannot represent it either
	}
	single := float32(f)
	if float64(single) != f {
		return binary.BigEndian.AppendUint64(append(dst, cborDouble), math.Float64bits(f))
	}
	if half, ok := halfBits(math.Float32bits(single)); ok {
		return binary.BigEndian.AppendUint16(append(dst, cborHalf), half)
	}
	return binary.BigEndian.AppendUint32(append(dst, cborSingle), math.Float32bits(single))
}

// halfBits returns the IEEE 754 half precision form of a finite single, if it has the same value.
func halfBits(single uint32) (half uint16, ok bool) {
	sign := uint16(single >> 16 & 0x8000)
	exponent := int(single>>23&0xff) - 127
	fraction := single & (1<<23 - 1)
	switch {
	case exponent == -127: // zero; subnormals are far too small
		return sign, fraction == 0
	case exponent >= -14 && exponent <= 15:
		return sign | uint16(exponent+15)<<10 | uint16(fraction>>13), fraction&(1<<13-1) == 0
	case exponent >= -24 && exponent < -14: // subnormal in half precision
		shift := uint(-exponent - 1) // 14 to 23: number of the 24 bits lost
		fraction |= 1 << 23
		return sign | uint16(fraction>>shift), fraction&(1<<shift-1) == 0
	}
	return 0, false
}
