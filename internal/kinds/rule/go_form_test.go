package rule

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

func TestGoForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{string(GoForm[networkingv1.ParentReference](nil)), `null`},
		{string(GoForm[networkingv1.ParentReference](map[string]any{"resource": "services", "name": "a"})),
			`{"Group":"","Resource":"services","Namespace":"","Name":"a"}`},
		{string(GoForm[resourcev1.DeviceAttribute](map[string]any{"int": int64(1), "strings": []any{"a", "b"}})),
			`{"IntValue":1,"BoolValue":null,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":["a","b"],"VersionValues":null}`},
		// metadata keep their names
		{string(GoForm[resourcev1.ResourceClaimTemplateSpec](map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
		})),
			`{"labels":{"a":"b"},"Spec":{"Devices":{"Requests":null,"Constraints":null,"Config":null}}}`},
		{string(GoForm[resourcev1.ResourceClaimTemplateSpec](map[string]any{})),
			`{"Spec":{"Devices":{"Requests":null,"Constraints":null,"Config":null}}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
