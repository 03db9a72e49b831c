package hook_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestMutatingOrder(t *testing.T) {
	c := start(t)
	l := listen(t, func(path string, request object) object {
		data, _ := request["object"].(object)["data"].(object)
		return patch(`[{"op":"add","path":"/data/%s","value":"%d"}]`, path[1:], len(data))
	})
	c.register(mutating, "b", l.webhook("one", "/b1", nil), l.webhook("two", "/b2", nil))
	c.register(mutating, "a", l.webhook("one", "/a1", nil))
	made := c.must("POST", configMaps, configMap("x", object{"k": "v"}))
	if want := (object{"k": "v", "a1": "1", "b1": "2", "b2": "3"}); !reflect.DeepEqual(made["data"], want) {
		t.Errorf("data %v, want %v", made["data"], want)
	}
	if got, want := l.paths(), []string{"/a1", "/b1", "/b2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}

func TestReinvocation(t *testing.T) {
	c := start(t)
	l := listen(t, func(path string, request object) object {
		data := request["object"].(object)["data"].(object)
		switch {
		case path == "/set" && data["set"] == nil:
			return patch(`[{"op":"add","path":"/data/set","value":"yes"}]`)
		case path == "/count":
			return patch(`[{"op":"add","path":"/data/count","value":"%d"}]`, len(data))
		}
		return object{"allowed": true}
	})
	again := func(w object) { w["reinvocationPolicy"] = "IfNeeded" }
	c.register(mutating, "a", l.webhook("count", "/count", again), l.webhook("once", "/once", nil),
		l.webhook("set", "/set", again))
	made := c.must("POST", configMaps, configMap("x", object{"k": "v"}))
	if want := (object{"k": "v", "count": "3", "set": "yes"}); !reflect.DeepEqual(made["data"], want) {
		t.Errorf("data %v, want %v", made["data"], want)
	}
	// The second round calls webhooks that request it and ran before a change: count, and then set, because count has
	// changed the object again.
	if got, want := l.paths(), []string{"/count", "/once", "/set", "/count", "/set"}; !reflect.DeepEqual(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}

func TestReview(t *testing.T) {
	c := start(t)
	l := listen(t, func(string, object) object {
		return object{"allowed": true, "warnings": []any{"mind the gap"}, "auditAnnotations": object{"k": "v"}}
	})
	c.register(validating, "v",
		l.webhook("v", "/v", func(w object) { w["admissionReviewVersions"] = []any{"v7", "v1beta1", "v1"} }))
	code, _, warnings := c.do("POST", configMaps+"?dryRun=All&fieldManager=me", configMap("x", nil))
	if code != 201 || len(warnings) != 1 || !strings.Contains(warnings[0], "mind the gap") {
		t.Errorf("code %d, warnings %v", code, warnings)
	}
	c.must("POST", configMaps, configMap("x", nil))
	c.must("PATCH", configMaps+"/x", object{"data": object{"a": "b"}})
	c.must("DELETE", configMaps+"/x", nil)
	requests := l.requests()
	if len(requests) != 4 {
		t.Fatalf("asked %d times", len(requests))
	}
	if v := requests[0]["version"]; v != "admission.k8s.io/v1beta1" {
		t.Errorf("version %v", v)
	}
	first := requests[0]["request"].(object)
	for key, want := range map[string]any{
		"kind":        object{"group": "", "version": "v1", "kind": "ConfigMap"},
		"requestKind": object{"group": "", "version": "v1", "kind": "ConfigMap"},
		"resource":    object{"group": "", "version": "v1", "resource": "configmaps"}, "name": "x",
		"namespace": "default",
		"operation": "CREATE",
		"dryRun":    true, "oldObject": nil, "subResource": nil,
		"options": object{
			"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": []any{"All"}, "fieldManager": "me",
		},
	} {
		if !reflect.DeepEqual(first[key], want) {
			t.Errorf("%s: %v, want %v", key, first[key], want)
		}
	}
	if userInfo := first["userInfo"].(object); userInfo["username"] == nil || userInfo["groups"] == nil {
		t.Errorf("userInfo %v", userInfo)
	}
	meta := first["object"].(object)["metadata"].(object)
	if meta["uid"] == nil || meta["creationTimestamp"] == nil {
		t.Errorf("a validating webhook sees the object as it will be stored, not %v", meta)
	}
	update, deletion := requests[2]["request"].(object), requests[3]["request"].(object)
	if update["operation"] != "UPDATE" || update["oldObject"] == nil ||
		update["options"].(object)["kind"] != "UpdateOptions" {
		t.Errorf("update %v", update)
	}
	if deletion["operation"] != "DELETE" || deletion["object"] != nil || deletion["oldObject"] == nil ||
		deletion["options"].(object)["kind"] != "DeleteOptions" {
		t.Errorf("deletion %v", deletion)
	}
}

// doubling is a JSON patch in which each operation doubles the result of the previous one.
var doubling = `[{"op":"add","path":"/data","value":{"x":"` + strings.Repeat("x", 64) + `"}}` +
	strings.Repeat(`,{"op":"copy","from":"/data","path":"/data/y"},{"op":"copy","from":"/data","path":"/data/z"}`,
		3000) + `]`

func TestRefusals(t *testing.T) {
	c := start(t)
	for i, test := range []struct {
		kind   string
		answer object
		code   int
		text   string
	}{
		{validating, object{"allowed": false, "status": object{"message": "no", "code": 418, "reason": "Teapot"}}, 418,
			`admission webhook "w.example.com" denied the request: no`},
		{validating, object{"allowed": false, "status": object{"reason": "Because"}}, 400,
			`admission webhook "w.example.com" denied the request: Because`},
		{mutating, object{"allowed": false}, 400,
			`admission webhook "w.example.com" denied the request without explanation`},
		// Codes that HTTP does not have: they used to cut the connection.
		{validating, object{"allowed": false, "status": object{"message": "no", "code": 1000}}, 400,
			`admission webhook "w.example.com" denied the request: no`},
		{mutating, object{"allowed": false, "status": object{"message": "no", "code": 1 << 30}}, 400,
			`admission webhook "w.example.com" denied the request: no`},
		{validating, object{"allowed": false, "status": object{"message": "no", "code": -5}}, 400,
			`admission webhook "w.example.com" denied the request: no`},
		// A patch of 300 kB that would create terabytes.
		{mutating, patch("%s", doubling), 500,
			`Internal error occurred: Unable to complete the copy, the accumulated size increase of copy is 3568465, exceeding the limit 3145728`},
		{mutating, object{"allowed": true, "patch": []byte(`[]`)}, 500,
			`Internal error occurred: failed calling webhook "w.example.com": received invalid webhook response: webhook returned response.patch but not response.patchType`},
		{mutating, patch(`{`), 500,
			`Internal error occurred: failed calling webhook "w.example.com": received undecodable patch in webhook response: unexpected end of JSON input`},
		{mutating, patch(`[{"op":"remove","path":"/nothing"}]`), 500,
			`Internal error occurred: error in remove for path: '/nothing': Unable to remove nonexistent key: nothing: missing value`},
		{mutating,
			object{
				"allowed": true, "patchType": "Merge", "patch": []byte(`[{"op":"add","path":"/data/x","value":"1"}]`),
			}, 500, `Internal error occurred: failed calling webhook "w.example.com": unsupported patch type "Merge"`},
		{validating, patch(`[]`), 500,
			`Internal error occurred: failed calling webhook "w.example.com": received invalid webhook response: validating webhook may not return response.patch`},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			l := listen(t, func(string, object) object { return test.answer })
			c.t = t
			c.register(test.kind, "w", l.webhook("w", "/", nil))
			defer c.must("DELETE", "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(test.kind)+"s/w", nil)
			code, status, _ := c.do("POST", configMaps, configMap("x", object{"k": "v"}))
			if code != test.code || status["message"] != test.text {
				t.Errorf("%d %v\nwant %d %s", code, status["message"], test.code, test.text)
			}
		})
	}
}

func TestConditionsAndSelectors(t *testing.T) {
	c := start(t)
	l := listen(t, func(string, object) object { return object{"allowed": false, "status": object{"message": "no"}} })
	c.register(validating, "v",
		l.webhook("conditions", "/conditions", func(w object) {
			w["matchConditions"] = []any{
				object{"name": "not-deleting", "expression": "request.operation != 'DELETE'"},
				object{"name": "marked", "expression": "object.metadata.?labels['mark'].orValue('') == 'yes'"},
			}
		}),
		l.webhook("labels", "/labels",
			func(w object) { w["objectSelector"] = object{"matchLabels": object{"label": "yes"}} }),
		l.webhook("namespaces", "/namespaces",
			func(w object) { w["namespaceSelector"] = object{"matchLabels": object{"watched": "yes"}} }))
	with := func(key string) object {
		m := configMap("x-"+key, nil)
		m["metadata"].(object)["labels"] = object{key: "yes"}
		return m
	}
	for key, want := range map[string][]string{"mark": {"/conditions"}, "label": {"/labels"}, "nothing": nil} {
		code, status, _ := c.do("POST", configMaps, with(key))
		if (code >= 300) != (want != nil) {
			t.Errorf("%s: %d %v", key, code, status["message"])
		}
		if got := l.paths(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: called %v, want %v", key, got, want)
		}
	}
	c.must("PATCH", "/api/v1/namespaces/default", object{"metadata": object{"labels": object{"watched": "yes"}}})
	if code, _, _ := c.do("DELETE", configMaps+"/x-nothing", nil); code != 400 {
		t.Errorf("deletion: %d", code)
	}
	if got := l.paths(); !reflect.DeepEqual(got, []string{"/namespaces"}) {
		t.Errorf("deletion: called %v", got)
	}
}

func TestDryRunAndFailurePolicy(t *testing.T) {
	c := start(t)
	l := listen(t, func(string, object) object { return object{"allowed": true} })
	l.Close() // the port is closed
	c.register(validating, "v", l.webhook("v", "/v", func(w object) { w["failurePolicy"] = "Ignore" }))
	c.must("POST", configMaps, configMap("ignored", nil))
	c.register(mutating, "m", l.webhook("m", "/m", nil))
	code, status, _ := c.do("POST", configMaps, configMap("failed", nil))
	want := fmt.Sprintf(
		`Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: Post "%s/m?timeout=10s": dial tcp %s: connect: connection refused`,
		l.URL, strings.TrimPrefix(l.URL, "https://"))
	if code != 500 || status["message"] != want {
		t.Errorf("%d %v\nwant %s", code, status["message"], want)
	}
	// Webhooks do not apply to webhook configurations, so that nobody is locked out.
	c.must("DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/m", nil)
	c.must("POST", configMaps, configMap("after", nil))
}
