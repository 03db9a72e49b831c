package check

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

func TestInGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{string(inGo[networkingv1.ParentReference](nil)), `null`},
		{string(inGo[networkingv1.ParentReference](object{"resource": "services", "name": "a"})),
			`{"Group":"","Resource":"services","Namespace":"","Name":"a"}`},
		{string(inGo[resourcev1.DeviceAttribute](object{"int": int64(1), "strings": []any{"a", "b"}})),
			`{"IntValue":1,"BoolValue":null,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":["a","b"],"VersionValues":null}`},
		// metadata keep their names
		{string(inGo[resourcev1.ResourceClaimTemplateSpec](object{"metadata": object{"labels": object{"a": "b"}}})),
			`{"labels":{"a":"b"},"Spec":{"Devices":{"Requests":null,"Constraints":null,"Config":null}}}`},
		{string(inGo[resourcev1.ResourceClaimTemplateSpec](object{})),
			`{"Spec":{"Devices":{"Requests":null,"Constraints":null,"Config":null}}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
