import {makeUseServer} from './runner.js';

const {afterAll, afterEach, beforeAll, beforeEach} = globalThis; // Jest's

export const useServer = makeUseServer({beforeAll, afterAll, beforeEach, afterEach});
