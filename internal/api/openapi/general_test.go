package openapi

import (
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestGeneral reads the documents without objects in their binary forms; test/oracle-builtins compares the JSON.
func TestGeneral(t *testing.T) {
	c, h := catalog.New(kinds.Resources()...), handler()
	for name, at := range generalDocuments(c.Snapshot()) {
		w := get(t, h, c, "/openapi/v3/"+name, "Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
		doc := &openapi_v3.Document{}
		if err := proto.Unmarshal(w.Body.Bytes(), doc); w.Code != 200 || err != nil {
			t.Fatalf("%s: %d, %v", name, w.Code, err)
		}
		if paths := doc.Paths.Path; len(paths) != 1 || paths[0].Name != at.path ||
			paths[0].Value.Get.OperationId != at.operations[0].id {
			t.Errorf("%s: %v", name, doc.Paths)
		}
		if s := doc.Components.SecuritySchemes.AdditionalProperties; len(s) != 1 || s[0].Name != "BearerToken" {
			t.Errorf("%s: %v", name, s)
		}
	}
	w := get(t, h, c, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	doc := &openapi_v2.Document{}
	if err := proto.Unmarshal(w.Body.Bytes(), doc); w.Code != 200 || err != nil {
		t.Fatalf("%d, %v", w.Code, err)
	}
	if len(doc.Security) != 1 ||
		doc.SecurityDefinitions.AdditionalProperties[0].Value.GetApiKeySecurity().GetName() != "authorization" {
		t.Errorf("%v, %v", doc.Security, doc.SecurityDefinitions)
	}
	ids := map[string]bool{}
	for _, at := range doc.Paths.Path {
		ids[at.Value.GetGet().GetOperationId()] = true
	}
	for _, want := range []string{"getCodeVersion", "getAppsAPIGroup", "getFlowcontrolApiserverAPIGroup",
		"getCoreAPIVersions", "getServiceAccountIssuerOpenIDKeyset"} {
		if !ids[want] {
			t.Errorf("no operation %s", want)
		}
	}
	if w := get(t, h, c, "/openapi/v3/apis/nothing"); w.Code != 404 {
		t.Errorf("no document: %d", w.Code)
	}
}
