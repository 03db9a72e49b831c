// This file lets functions be declared without a body: see service_test.go.
