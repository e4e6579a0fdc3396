SELECT pg_catalog.set_config('search_path', '', false);
CREATE FUNCTION public.events_refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only';
END;
$$;
CREATE FUNCTION public.events_refuse_early_delete() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.job IS NULL OR EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job) THEN
        RAISE EXCEPTION 'events are append-only';
    END IF;
    RETURN OLD;
END;
$$;
CREATE FUNCTION public.job_search_follow() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO job_search (job, words) VALUES (NEW.id, job_words(NEW.name, NEW.workspace, NEW.owner))
        ON CONFLICT (job) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END;
$$;
CREATE FUNCTION public.job_words(name text, workspace text, owner text) RETURNS text[]
    LANGUAGE sql STABLE
    AS $$
    SELECT array_agg(DISTINCT upper(encode(substr(named.folded, start, length), 'hex')))
            || ('w' || upper(encode(convert_to(workspace, 'UTF8'), 'hex')))
            || ('o' || upper(encode(convert_to(owner, 'UTF8'), 'hex')))
        FROM (SELECT convert_to(lower(name COLLATE "C"), 'UTF8') AS folded) AS named,
            generate_series(1, 3) AS length,
            generate_series(1, octet_length(named.folded) - length + 1) AS start
$$;
CREATE TABLE public.audit (
    number bigint NOT NULL,
    by_whom text NOT NULL,
    subject text NOT NULL,
    entry text NOT NULL
);
CREATE TABLE public.counters (
    only_row bigint NOT NULL,
    job_last_id bigint NOT NULL,
    event_last_number bigint NOT NULL,
    identity text,
    epoch bigint DEFAULT 0 NOT NULL,
    CONSTRAINT counters_only_row_check CHECK ((only_row = 1))
)
WITH (fillfactor='50');
CREATE TABLE public.directory (
    kind text NOT NULL,
    key text NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.events (
    number bigint NOT NULL,
    at bigint NOT NULL,
    job bigint,
    attempt bigint,
    kind text NOT NULL,
    actor text NOT NULL,
    message text NOT NULL
);
CREATE TABLE public.job_counts (
    workspace text NOT NULL,
    owner text NOT NULL,
    status text NOT NULL,
    number bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.job_labels (
    job bigint NOT NULL,
    key text NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.job_search (
    job bigint NOT NULL,
    words text[] NOT NULL
);
CREATE TABLE public.jobs (
    id bigint NOT NULL,
    name text NOT NULL,
    workspace text NOT NULL,
    owner text NOT NULL,
    priority bigint NOT NULL,
    state text NOT NULL,
    outcome text,
    submitted_at bigint NOT NULL,
    ended_at bigint,
    generation bigint NOT NULL,
    spec text NOT NULL,
    life text NOT NULL,
    code text
);
CREATE TABLE public.node_notes (
    node text NOT NULL,
    note text NOT NULL
);
CREATE TABLE public.schema_version (
    version bigint NOT NULL
);
CREATE TABLE public.submissions (
    key text NOT NULL,
    job bigint NOT NULL,
    digest text
);
INSERT INTO public.audit VALUES (1, '-', 'admin', '{"number":1,"at":"2026-11-19T23:30:14.078615025Z","by":"-","from":"127.0.0.1","action":"account.create","subject":"admin","after":{"admin":true,"created_at":"2026-11-19T23:30:14.078567864Z","name":"admin","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"08b9de5082a99fad83a6f98af4cae255ef96cbe2e8da783178cbbd9579c447a6"}');
INSERT INTO public.audit VALUES (2, '-', 'admin', '{"number":2,"at":"2026-11-19T23:30:14.084288856Z","by":"-","from":"127.0.0.1","action":"account.sign_in_link","subject":"admin","seal":"5b1ed5ae1e733f26e6081da2bcccbbb57c62e28ec1f7281672899f67f131b316"}');
INSERT INTO public.audit VALUES (3, 'admin', 'lab', '{"number":3,"at":"2026-11-19T23:30:14.173809683Z","by":"admin","from":"127.0.0.1","action":"workspace.create","subject":"lab","after":{"approve_above":{"ascend":4},"guaranteed":{"ascend":4},"head_of_line":"backfill","limit":{"ascend":8},"per_user":{}},"seal":"f1cac1e99c41f70dc7618f4a4a742994cf9643097a31aacf138d91724cc1a1d2"}');
INSERT INTO public.audit VALUES (4, 'admin', 'vision', '{"number":4,"at":"2026-11-19T23:30:14.178471123Z","by":"admin","from":"127.0.0.1","action":"workspace.create","subject":"vision","after":{"default_priority":3,"guaranteed":{},"head_of_line":"backfill","limit":{},"per_user":{},"shared_folder":"/srv/vision"},"seal":"a616e906745ac43088bf62b7df47be994b32644caf2da3e1b092d642e63d6f10"}');
INSERT INTO public.audit VALUES (5, 'admin', 'gone', '{"number":5,"at":"2026-11-19T23:30:14.18280925Z","by":"admin","from":"127.0.0.1","action":"workspace.create","subject":"gone","after":{"guaranteed":{},"head_of_line":"backfill","limit":{},"per_user":{}},"seal":"76f3c310de8015ff557634d9733ae3a466144c937a8786bed974824d58436bfd"}');
INSERT INTO public.audit VALUES (6, 'admin', 'all workspaces', '{"number":6,"at":"2026-11-19T23:30:14.199130648Z","by":"admin","from":"127.0.0.1","action":"sharing.change","subject":"all workspaces","before":{"lending":true,"minimum_run_time":"5m"},"after":{"lending":true,"minimum_run_time":"10m"},"seal":"6b9f265f15679e9bcf54dbe5882314a42a5a36ffd390586633b5e72a379af87d"}');
INSERT INTO public.audit VALUES (7, 'admin', 'ada', '{"number":7,"at":"2026-11-19T23:30:14.252105462Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"ada","after":{"admin":false,"created_at":"2026-11-19T23:30:14.252002328Z","display_name":"ada 丹","name":"ada","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"415b7350ece103e59da61f64f9b09738b20c24b59e434218dbe161c811b981a1"}');
INSERT INTO public.audit VALUES (8, 'admin', 'otto', '{"number":8,"at":"2026-11-19T23:30:14.320258727Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"otto","after":{"admin":false,"created_at":"2026-11-19T23:30:14.320157385Z","display_name":"otto 丹","name":"otto","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"6a77d87322ffd0db92ee7e13ab9f7c10308839e2b2b4f64a93ee736d54ec2b8e"}');
INSERT INTO public.audit VALUES (9, 'admin', 'vera', '{"number":9,"at":"2026-11-19T23:30:14.39869857Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"vera","after":{"admin":false,"created_at":"2026-11-19T23:30:14.398598491Z","display_name":"vera 丹","name":"vera","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"0cd6b30de77551f644efbd65725550af3a9204dc9bc3c5a6c8c6fa36c2e32c01"}');
INSERT INTO public.audit VALUES (10, 'admin', 'mfa', '{"number":10,"at":"2026-11-19T23:30:14.46141673Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"mfa","after":{"admin":false,"created_at":"2026-11-19T23:30:14.461319325Z","display_name":"mfa 丹","name":"mfa","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"3f3c987443bced3166f967e2e1aa2a6ec2129da26b218809bd5cdc0fbecd67f2"}');
INSERT INTO public.audit VALUES (11, 'admin', 'left', '{"number":11,"at":"2026-11-19T23:30:14.508691273Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"left","after":{"admin":false,"created_at":"2026-11-19T23:30:14.508596161Z","display_name":"left 丹","name":"left","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"0dff1b4d69a82f25a962e1e5732c14760ee0d6dc8f90e0d5cf9d7a8d38ff0adf"}');
INSERT INTO public.audit VALUES (12, 'admin', 'away', '{"number":12,"at":"2026-11-19T23:30:14.592260014Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"away","after":{"admin":false,"created_at":"2026-11-19T23:30:14.592161387Z","display_name":"away 丹","name":"away","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"4afd879c4ed5b2b0c851d0c897736353386a60317dd09af869012608910e8cc1"}');
INSERT INTO public.audit VALUES (13, 'admin', 'lab', '{"number":13,"at":"2026-11-19T23:30:14.609607981Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"ada","role":"member"},"seal":"53f5832f07891e5954ead1218f322c1a1ce3131d377021139b39b79b2fdeddb4"}');
INSERT INTO public.audit VALUES (14, 'admin', 'lab', '{"number":14,"at":"2026-11-19T23:30:14.625402703Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"otto","role":"owner"},"seal":"9f65d6f78905ffb11fdd5b6a76b63d11e489de09ac6cebc68701afc590c55b5c"}');
INSERT INTO public.audit VALUES (15, 'admin', 'lab', '{"number":15,"at":"2026-11-19T23:30:14.637171745Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"vera","role":"viewer"},"seal":"fdbcd5d7a4041892a66b6e860f426db9d4d43402668ecfa27af89b3cd7f6277e"}');
INSERT INTO public.audit VALUES (16, 'admin', 'lab', '{"number":16,"at":"2026-11-19T23:30:14.661648059Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"mfa","role":"member"},"seal":"a695737a41e9677a2840a9902ec28c7bbedbcf8ffc1fefe6adae948f018c4f14"}');
INSERT INTO public.audit VALUES (17, 'admin', 'lab', '{"number":17,"at":"2026-11-19T23:30:14.677524172Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"left","role":"member"},"seal":"135bea621f4bc30ed9b452636bfd6637d0562e3de0c811ae3f6a2c5a320c4ca6"}');
INSERT INTO public.audit VALUES (18, 'ada', 'ada', '{"number":18,"at":"2026-11-19T23:30:14.817459851Z","by":"ada","from":"127.0.0.1","action":"session.begin","subject":"ada","after":{"with":"password"},"seal":"f4e597e854cfd71d44c9db42f085fb280bf3bfb6e273021ff6f8c1e86f575986"}');
INSERT INTO public.audit VALUES (19, 'otto', 'otto', '{"number":19,"at":"2026-11-19T23:30:14.960125295Z","by":"otto","from":"127.0.0.1","action":"session.begin","subject":"otto","after":{"with":"password"},"seal":"9575bffa3bf3274b4716ec27909d8e60214af099784f63a5a92de4457c1eac4f"}');
INSERT INTO public.audit VALUES (20, 'vera', 'vera', '{"number":20,"at":"2026-11-19T23:30:15.068127266Z","by":"vera","from":"127.0.0.1","action":"session.begin","subject":"vera","after":{"with":"password"},"seal":"0fecaf7a9d3dc20f6b8c9ef83bb6d01c77e975e3a7be1dd94b53aac494cd45e8"}');
INSERT INTO public.audit VALUES (21, 'ada', 'ada', '{"number":21,"at":"2026-11-19T23:30:15.090250376Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:15.090190877Z","id":"0d5c2d5188f0","kind":"api","name":"script","scope":"jobs"},"seal":"1880ea6d7dca91345734af44a456da6aaf19caa04d8ed24a2cbbdd53a4e3da28"}');
INSERT INTO public.audit VALUES (22, 'ada', 'ada', '{"number":22,"at":"2026-11-19T23:30:15.11759338Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:15.117531969Z","id":"811d2dc327c9","kind":"api","name":"dashboard","scope":"read"},"seal":"6d56d72d4624798e2b02f7ac83fa0c18b062a8e5e548ccdc57c8f3abb646d2ed"}');
INSERT INTO public.audit VALUES (23, 'ada', 'ada', '{"number":23,"at":"2026-11-19T23:30:15.133508993Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:15.133451837Z","id":"71490dbf0414","kind":"api","name":"all","scope":"all"},"seal":"365f58c316be5e209a90cda05d066a4369809f8804470d702264c30adb00464e"}');
INSERT INTO public.audit VALUES (26, 'ada', 'ada', '{"number":26,"at":"2026-11-19T23:30:15.217760103Z","by":"ada","from":"127.0.0.1","action":"ssh_key.add","subject":"ada","after":{"created_at":"2026-11-19T23:30:15.217713593Z","fingerprint":"SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA","id":"8ea1b2d9953f","key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f","name":"ada@laptop"},"seal":"2863b105482dbcb15875e7a8a4ef12e0506e1f3033efa543ccbbc0fed649ba72"}');
INSERT INTO public.audit VALUES (29, 'admin', 'vera', '{"number":29,"at":"2026-11-19T23:30:15.277259337Z","by":"admin","from":"127.0.0.1","action":"account.password_link","subject":"vera","seal":"67da7f5b76b446a92b65d3f7aa2f3c5c595b04ce6985ed00685ad174022c9313"}');
INSERT INTO public.audit VALUES (32, 'invited', 'invited', '{"number":32,"at":"2026-11-19T23:30:15.492178448Z","by":"invited","from":"127.0.0.1","action":"account.create","subject":"invited","after":{"admin":false,"created_at":"2026-11-19T23:30:15.492060903Z","name":"invited","second_factor":false,"standing":"active","unix_user":false,"workspaces":[]},"seal":"f37fce7fd295e220dd7fb11c5b8a8617e1fc4fb36c63ec6cf21dd3eb614be08f"}');
INSERT INTO public.audit VALUES (35, 'mfa', 'mfa', '{"number":35,"at":"2026-11-19T23:30:15.939649457Z","by":"mfa","from":"127.0.0.1","action":"totp.enrol","subject":"mfa","after":{"admin":false,"created_at":"2026-11-19T23:30:14.461319325Z","display_name":"mfa 丹","name":"mfa","second_factor":false,"standing":"active","unix_user":true,"workspaces":[{"role":"member","workspace":"lab"}]},"seal":"d4b0b95b2ce4ebf80c8e4d06f317fbc046bb4a94a672b39bea32b6437ec1c024"}');
INSERT INTO public.audit VALUES (38, 'nina-l', 'nina-l', '{"number":38,"at":"2026-11-19T23:30:16.048650049Z","by":"nina-l","from":"127.0.0.1","action":"account.create","subject":"nina-l","after":{"admin":false,"created_at":"2026-11-19T23:30:16.048591341Z","display_name":"Nina","name":"nina-l","second_factor":false,"standing":"active","unix_user":false,"workspaces":[]},"seal":"1e1c474eb105be6011a0a1a1e784303daede1f0f99de3d14fca6c7cb4c7ab2a4"}');
INSERT INTO public.audit VALUES (41, 'admin', 'away', '{"number":41,"at":"2026-11-19T23:30:16.081089763Z","by":"admin","from":"127.0.0.1","action":"account.change","subject":"away","before":{"admin":false,"created_at":"2026-11-19T23:30:14.592161387Z","display_name":"away 丹","name":"away","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"after":{"admin":false,"created_at":"2026-11-19T23:30:14.592161387Z","display_name":"away 丹","name":"away","second_factor":false,"standing":"disabled","unix_user":true,"workspaces":[]},"seal":"528b5db87d2e05b37aefeaa42f4986f08fd411bc09f954f74a50844b4e82fc6c"}');
INSERT INTO public.audit VALUES (44, 'admin', 'admin', '{"number":44,"at":"2026-11-19T23:30:16.141868978Z","by":"admin","from":"127.0.0.1","action":"account.sign_in_link","subject":"admin","seal":"b489b47c2d142025dc034d96e3f2ae0830ee4cef656b141a1d1f043acba8f5d8"}');
INSERT INTO public.audit VALUES (24, 'ada', 'ada', '{"number":24,"at":"2026-11-19T23:30:15.153693108Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:15.15362057Z","expires_at":"2027-11-19T23:30:15.15362057Z","id":"ef3c294e4751","kind":"api","name":"for a year","scope":"all"},"seal":"ac304145e7a2b1a98eb3a11bf24e8e274c519a50bee7fe27b86e4c72b02b7f71"}');
INSERT INTO public.audit VALUES (27, 'ada', 'ada', '{"number":27,"at":"2026-11-19T23:30:15.241759825Z","by":"ada","from":"127.0.0.1","action":"s3_key.create","subject":"ada","after":{"access_key":"DCJF4OLKZVUMDYQXLK3B","created_at":"2026-11-19T23:30:15.241718553Z","name":"bucket"},"seal":"1d47265992a848bbf6b4204d7e2555942329cee3843c1d816a0130ae6fde92f9"}');
INSERT INTO public.audit VALUES (30, 'otto', 'lab', '{"number":30,"at":"2026-11-19T23:30:15.28940444Z","by":"otto","from":"127.0.0.1","action":"invitation.create","subject":"lab","after":{"by":"otto","created_at":"2026-11-19T23:30:15.289344881Z","expires_at":"2026-12-19T23:30:15.289344881Z","id":"436f9e1cb7db","role":"viewer","workspace":"lab"},"seal":"966cd1d1660c3ab3f0d2afe2aa497343746241cb4d1a8affb2d72e25766c9977"}');
INSERT INTO public.audit VALUES (33, 'asks', 'asks', '{"number":33,"at":"2026-11-19T23:30:15.590124525Z","by":"asks","from":"127.0.0.1","action":"account.create","subject":"asks","after":{"admin":false,"asks_for":"lab","created_at":"2026-11-19T23:30:15.590018447Z","email":"asks@example.org","name":"asks","second_factor":false,"standing":"waiting","unix_user":false,"workspaces":[]},"seal":"6ee6a4777a97464305ab7818e79ace09efdedc3301c3c552c315af186979cd2e"}');
INSERT INTO public.audit VALUES (36, 'mfa', 'mfa', '{"number":36,"at":"2026-11-19T23:30:15.954194243Z","by":"mfa","from":"127.0.0.1","action":"totp.confirm","subject":"mfa","after":{"admin":false,"created_at":"2026-11-19T23:30:14.461319325Z","display_name":"mfa 丹","name":"mfa","second_factor":true,"standing":"active","unix_user":true,"workspaces":[{"role":"member","workspace":"lab"}]},"seal":"e079a71977700e2009352832023c62c8a40aa82aef4b34e18d8982f4b87f7adb"}');
INSERT INTO public.audit VALUES (39, 'nina-l', 'nina-l', '{"number":39,"at":"2026-11-19T23:30:16.060128306Z","by":"nina-l","from":"127.0.0.1","action":"session.begin","subject":"nina-l","after":{"with":"provider"},"seal":"85bb83aeabf3090af4cbe3924ad9a600daa78a933f7f24f5b435fcd5cbdf4aed"}');
INSERT INTO public.audit VALUES (42, 'admin', 'left', '{"number":42,"at":"2026-11-19T23:30:16.089067133Z","by":"admin","from":"127.0.0.1","action":"account.delete","subject":"left","before":{"admin":false,"created_at":"2026-11-19T23:30:14.508596161Z","display_name":"left 丹","name":"left","second_factor":false,"standing":"active","unix_user":true,"workspaces":[{"role":"member","workspace":"lab"}]},"seal":"4ebd52d0b90cc1871059b1e0cfa2d5e4a662ead708a7a9f96ade3cf074c69b70"}');
INSERT INTO public.audit VALUES (45, 'admin', 'admin', '{"number":45,"at":"2026-11-19T23:30:16.154557572Z","by":"admin","from":"127.0.0.1","action":"session.begin","subject":"admin","after":{"with":"link"},"seal":"e10b341cee62c25386e118d3f9d9f0ff34495e122548b2d84dc5685d551f92a6"}');
INSERT INTO public.audit VALUES (25, 'ada', 'ada', '{"number":25,"at":"2026-11-19T23:30:15.17755149Z","by":"ada","from":"127.0.0.1","action":"token.rotate","subject":"ada","after":{"created_at":"2026-11-19T23:30:15.177474194Z","expires_at":"2027-11-19T23:30:15.177474194Z","id":"ef3c294e4751","kind":"api","name":"for a year","scope":"all"},"seal":"ef3a5227fcd9ed62d055b12c769c38d9d3eb4850b333eb7fa69bb02fac78a970"}');
INSERT INTO public.audit VALUES (28, 'otto', 'otto', '{"number":28,"at":"2026-11-19T23:30:15.26140759Z","by":"otto","from":"127.0.0.1","action":"account.sign_in_link","subject":"otto","seal":"dbd20c572153c50db37fb0ff792eb4a736879c605cc57c1ad3f80f9d3462bdb2"}');
INSERT INTO public.audit VALUES (31, 'otto', 'lab', '{"number":31,"at":"2026-11-19T23:30:15.305523897Z","by":"otto","from":"127.0.0.1","action":"invitation.create","subject":"lab","after":{"by":"otto","created_at":"2026-11-19T23:30:15.305464658Z","expires_at":"2026-11-26T23:30:15.305464658Z","id":"3052a9f922b7","role":"member","workspace":"lab"},"seal":"4c9a6b024652429310b213086c03f4d43a890706edc34bd50a02f4c252550086"}');
INSERT INTO public.audit VALUES (34, 'mfa', 'mfa', '{"number":34,"at":"2026-11-19T23:30:15.7630713Z","by":"mfa","from":"127.0.0.1","action":"session.begin","subject":"mfa","after":{"with":"password"},"seal":"f6ec3d5f9f8793702dd286c2152f69b89120bf3f7b4266e2479503bdfe7a063d"}');
INSERT INTO public.audit VALUES (37, 'mfa', 'mfa', '{"number":37,"at":"2026-11-19T23:30:15.998903356Z","by":"mfa","from":"127.0.0.1","action":"session.begin","subject":"mfa","after":{"with":"password"},"seal":"2ef5f4cea4e2f0ceb807147ba9db027cad92a552707055c3e8853de200d18257"}');
INSERT INTO public.audit VALUES (40, 'otto', 'lab', '{"number":40,"at":"2026-11-19T23:30:16.07374061Z","by":"otto","from":"127.0.0.1","action":"secret.set","subject":"lab","after":{"secret":"wandb"},"seal":"7f010470acb76dd4cfe6417a954031920f3a5c88561dcec39e05caca524a9621"}');
INSERT INTO public.audit VALUES (43, 'admin', 'gone', '{"number":43,"at":"2026-11-19T23:30:16.133522687Z","by":"admin","from":"127.0.0.1","action":"workspace.delete","subject":"gone","before":{"guaranteed":{},"head_of_line":"backfill","limit":{},"per_user":{}},"seal":"61d6e5621ec38de1893b1ae554962a2ce53a4d7aaad57bebe3903ebc16cd9e1b"}');
INSERT INTO public.audit VALUES (46, '-', 'ada', '{"number":46,"at":"2026-11-19T23:30:16.309471554Z","by":"-","from":"-","action":"unix_user.give","subject":"ada","after":{"uid":200000},"seal":"c86d5fb0254b76d2d459f35925c9adabf99a6b5d555ed0aae42f68f590fcc586"}');
INSERT INTO public.audit VALUES (47, 'otto', 'otto', '{"number":47,"at":"2026-11-19T23:30:17.127556122Z","by":"otto","from":"127.0.0.1","action":"token.create","subject":"otto","after":{"created_at":"2026-11-19T23:30:17.127480319Z","id":"eac91838b34f","kind":"api","name":"otto''s","scope":"read"},"seal":"151223f59c20820ed79a34e8319c07ea6e89420b3d7fc4ec1a2234db0893f537"}');
INSERT INTO public.counters VALUES (1, 8, 28, 'f31a663f5d565647c6601899399327db', 3);
INSERT INTO public.directory VALUES ('account', 'admin', '{"name":"admin","admin":true,"standing":"active","created_at":"2026-11-19T23:30:14.078567864Z","unix_user":true}');
INSERT INTO public.directory VALUES ('workspace', 'lab', '{"guaranteed":{"ascend":4},"limit":{"ascend":8},"per_user":{},"head_of_line":"backfill","approve_above":{"ascend":4}}');
INSERT INTO public.directory VALUES ('workspace', 'vision', '{"guaranteed":{},"limit":{},"per_user":{},"head_of_line":"backfill","default_priority":3,"shared_folder":"/srv/vision"}');
INSERT INTO public.directory VALUES ('sharing', '', '{"lending":true,"minimum_run_time":"10m"}');
INSERT INTO public.directory VALUES ('account', 'ada', '{"name":"ada","display_name":"ada 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$gqdzJnpVbemJlyOZab+fUw$/FPe6ZIvM1KmzGqM/75Zw9Hmfd6ZQxlQMFZlXOj74jo","created_at":"2026-11-19T23:30:14.252002328Z","unix_user":true}');
INSERT INTO public.directory VALUES ('account', 'otto', '{"name":"otto","display_name":"otto 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$GDpdzC7+Xm1clSc5MN5Mvg$qs6g9RElR/1cpbVPZiDHWmxURyscH0tNYFbcbO0DkRQ","created_at":"2026-11-19T23:30:14.320157385Z","unix_user":true}');
INSERT INTO public.directory VALUES ('account', 'vera', '{"name":"vera","display_name":"vera 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$+r104Ps4be90MfbwDV/N+A$o2EQ9vA23WVqjm4K3kNK0gqBjDZPwmLxNDsfYk53my4","created_at":"2026-11-19T23:30:14.398598491Z","unix_user":true}');
INSERT INTO public.directory VALUES ('member', 'lab/ada', '{"role":"member"}');
INSERT INTO public.directory VALUES ('member', 'lab/otto', '{"role":"owner"}');
INSERT INTO public.directory VALUES ('member', 'lab/vera', '{"role":"viewer"}');
INSERT INTO public.directory VALUES ('member', 'lab/mfa', '{"role":"member"}');
INSERT INTO public.directory VALUES ('token', '2a8606cea8922275a5edf9318de00f43bae9d1eafc2f0f453cd1e844dfe26621', '{"id":"10cc65c9f45f","account":"ada","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:14.817357758Z","expires_at":"2026-11-26T23:30:14.817357758Z"}');
INSERT INTO public.directory VALUES ('token', 'e22ac2ef7f78356ca82d57871ca1af4bc36f371d089d4c440477a9046bdc436d', '{"id":"8878fcef42ef","account":"otto","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:14.960019758Z","expires_at":"2026-11-26T23:30:14.960019758Z"}');
INSERT INTO public.directory VALUES ('token', 'f3c3221a727ec7ebd71bc2d199fbeacc29413c24851db7255c569da5e3169751', '{"id":"64a24a99ba29","account":"vera","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:15.068026405Z","expires_at":"2026-11-26T23:30:15.068026405Z"}');
INSERT INTO public.directory VALUES ('token', '234147b7288d7ba9db0eb0e770de1efcb27ae583b5ac0e8808997f5055539a3a', '{"id":"0d5c2d5188f0","account":"ada","kind":"api","name":"script","scope":"jobs","created_at":"2026-11-19T23:30:15.090190877Z"}');
INSERT INTO public.directory VALUES ('token', 'e51716a4637800bf8309a3fa3107613bfbf500d215d08fbc29e405ec3cecbe2a', '{"id":"811d2dc327c9","account":"ada","kind":"api","name":"dashboard","scope":"read","created_at":"2026-11-19T23:30:15.117531969Z"}');
INSERT INTO public.directory VALUES ('token', 'f0ee369032efbe7f890e68992c1e93c4274558c5a05f0163a039be3a9c7825e1', '{"id":"71490dbf0414","account":"ada","kind":"api","name":"all","scope":"all","created_at":"2026-11-19T23:30:15.133451837Z"}');
INSERT INTO public.directory VALUES ('token', '0d37e3b368c30dae75a89fd56e73fd7bb225ee9fab72b1e8897de64b05f25db5', '{"id":"ef3c294e4751","account":"ada","kind":"api","name":"for a year","scope":"all","created_at":"2026-11-19T23:30:15.177474194Z","expires_at":"2027-11-19T23:30:15.177474194Z"}');
INSERT INTO public.directory VALUES ('ssh_key', 'SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA', '{"id":"8ea1b2d9953f","account":"ada","name":"ada@laptop","key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f","created_at":"2026-11-19T23:30:15.217713593Z"}');
INSERT INTO public.directory VALUES ('s3_key', 'DCJF4OLKZVUMDYQXLK3B', '{"account":"ada","name":"bucket","secret":"v1.hojIltAd7pY-VnrKJgR1EkeH3dbDHX2dpssIq5_qNVFe4N62Fpl1JiR4fXPki8znP8YSMZKpmidWEQzGOdHs_9jiX4E","created_at":"2026-11-19T23:30:15.241718553Z"}');
INSERT INTO public.directory VALUES ('token', '299b45d8ff9c3a0645ef4b6075c57f102129de709090589428c933fcaa5636d4', '{"id":"71a47ff58119","account":"otto","kind":"sign_in_link","name":"a link to sign in","scope":"read","created_at":"2026-11-19T23:30:15.261351326Z","expires_at":"2026-11-19T23:40:15.261351326Z","session_ends":"2026-11-26T23:30:14.960019758Z","root":"8878fcef42ef"}');
INSERT INTO public.directory VALUES ('token', '0d1b3f98e6a3080ba22143f9a5931f5928a47381409983565000c9cc71c1c964', '{"id":"361c1279719e","account":"vera","kind":"password_link","name":"a link to set a password","scope":"read","created_at":"2026-11-19T23:30:15.277211556Z","expires_at":"2026-11-21T23:30:15.277211556Z"}');
INSERT INTO public.directory VALUES ('invitation', 'adb58ec858a4271588e324a445adc951e54c7d0027a85f199eff4dccc710ac74', '{"id":"436f9e1cb7db","workspace":"lab","role":"viewer","by":"otto","created_at":"2026-11-19T23:30:15.289344881Z","expires_at":"2026-12-19T23:30:15.289344881Z"}');
INSERT INTO public.directory VALUES ('member', 'lab/invited', '{"role":"member"}');
INSERT INTO public.directory VALUES ('account', 'invited', '{"name":"invited","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$5vu18oEG7z3/biWRr1dBfg$TxIVJ8St45HCKo79zmAMfxH2ZBPvotAUpGmSE+x/QoY","created_at":"2026-11-19T23:30:15.492060903Z"}');
INSERT INTO public.directory VALUES ('account', 'asks', '{"name":"asks","email":"asks@example.org","admin":false,"standing":"waiting","password":"$argon2id$v=19$m=19456,t=2,p=1$MiEgnpS6Y0QVIDtl7D8Y9w$2SBeJpqSuVxYsxZQP+wA72p/D87DyVS4pQD3b/Y4NMU","created_at":"2026-11-19T23:30:15.590018447Z","asks_for":"lab"}');
INSERT INTO public.directory VALUES ('token', 'e47c4e0e8efcf0fd488222debbc5237b14077d63af87060f62b383d19271c539', '{"id":"b50ce4740859","account":"mfa","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:15.762965272Z","expires_at":"2026-11-26T23:30:15.762965272Z"}');
INSERT INTO public.directory VALUES ('subject', 'http://127.0.0.1:34483 7', '{"account":"nina-l","linked_at":"2026-11-19T23:30:16.048531111Z"}');
INSERT INTO public.directory VALUES ('account', 'nina-l', '{"name":"nina-l","display_name":"Nina","admin":false,"standing":"active","created_at":"2026-11-19T23:30:16.048591341Z"}');
INSERT INTO public.directory VALUES ('account', 'away', '{"name":"away","display_name":"away 丹","admin":false,"standing":"disabled","password":"$argon2id$v=19$m=19456,t=2,p=1$7K3lzORe+V4/JeP8H7/nag$htmju/K4P3bD64yPTHnwKz+cQZ/q9x76CnxG+HPMyEY","created_at":"2026-11-19T23:30:14.592161387Z","unix_user":true}');
INSERT INTO public.directory VALUES ('member', 'vision/nina-l', '{"role":"owner","from_group":true}');
INSERT INTO public.directory VALUES ('token', '8d9cc293a81b0573957af5546c7404a325d3c7c6ee6a3a9489c80b18c79a4539', '{"id":"36a2239e3998","account":"nina-l","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:16.060063359Z","expires_at":"2026-11-26T23:30:16.060063359Z"}');
INSERT INTO public.directory VALUES ('former_account', 'left', '{"deleted_at":"2026-11-19T23:30:16.089008285Z"}');
INSERT INTO public.directory VALUES ('milestone', 'admin_signed_in', '{}');
INSERT INTO public.directory VALUES ('token', '9fd69593322291fd8a3d547e8fbd6471ab57dbc73538197aaf7de5fed5878767', '{"id":"287913ec2df5","account":"admin","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:16.154504533Z","expires_at":"2026-11-26T23:30:16.154504533Z"}');
INSERT INTO public.directory VALUES ('account', 'mfa', '{"name":"mfa","display_name":"mfa 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$a8fquMheKiglTOqMeZFQ4A$1Z0sWg4449GAH0V8He0bkyfD1/c0dxIQkBHkDTJu1Ds","created_at":"2026-11-19T23:30:14.461319325Z","second_factor":{"secret":"v1.l2OvQviKnfrU9LAtG9PRE4qqgGsSVSyBt6gic7WmOhfIjBpHMa-oKXET9mZ3T-ws","confirmed":true,"last_step":59837700,"recovery":["2af2f7e6b220bb21b0183a3cd7ae7a9b973ac267f912ad368aa83f8f71bd1ab5","fd678a56518b8b86a26b77b9144d7a281f1cc069d67f7de215c7328a1cc0f98b","4a6bf8f8cf74745ae75f8ed04d588eded6fbb6d97dc4c8fa348149e060a32233","9eef718f1f32033024161f1d966fa917a4622271829a77b45f364d908ce4acb7","6da5f4ead2eea79b19a9bc401ebcb60b0b3c4863a741396f31601af7ef03e3f8","9d3e7ac1604d30aa73d8d142796638b24862e48bf0d9d5fe4df9acb2623aebfd","3de9a12b2c247610e1d79b702a4cad6c117558cac0a80c2dd7e27d9134b42ecc","8c4ade2496953642b41353183373c49abf582f4a20154b3bf2fbd13f817d91df","9507cbc6831df971623bb93c8538263bd10d65099191d7e752df33d97fccb238"]},"unix_user":true}');
INSERT INTO public.directory VALUES ('token', '3f552e99cbb95a571935137d3471a98b6e32a9b7d4f386f273683d1862ebb1a9', '{"id":"6b096c87a60e","account":"mfa","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:15.998861884Z","expires_at":"2026-11-26T23:30:15.998861884Z"}');
INSERT INTO public.directory VALUES ('secret', 'lab/wandb', '{"sealed":"v1.8USvRTYhMdjvj0mEzRxLFgzb7wQyknYf4RM4Xjs4BDDutaNBJ604j2BXx9s9_3MBo2E","changed_at":"2026-11-19T23:30:16.073714211Z","changed_by":"otto"}');
INSERT INTO public.directory VALUES ('former_workspace', 'gone', '{"deleted_at":"2026-11-19T23:30:16.133490749Z"}');
INSERT INTO public.directory VALUES ('unix_user', 'ada', '{"uid":200000}');
INSERT INTO public.directory VALUES ('token', '9cde4111b2e1ab40155f6d7adc3518eedc84b5a1f487d8c8713b06df04750eff', '{"id":"eac91838b34f","account":"otto","kind":"api","name":"otto''s","scope":"read","created_at":"2026-11-19T23:30:17.127480319Z"}');
INSERT INTO public.directory VALUES ('audit_head', '', '{"number":47,"entry":"0025c7db06028e0bc5b1f4699c5208bf12584d54990920392dac9c92ca83b13a","directory":"87f007e644ed4cc4c682c195674ff4bf291aa57b3291534a7d336534c54583f9"}');
INSERT INTO public.events VALUES (1, 1795131016371880, 1, NULL, 'job_submitted', 'ada', 'submitted `job`');
INSERT INTO public.events VALUES (2, 1795131016389626, 1, 1, 'attempt_placed', 'danlu', 'attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO public.events VALUES (3, 1795131016416400, 1, 1, 'attempt_running', 'danlu', 'attempt 1 is running');
INSERT INTO public.events VALUES (4, 1795131016416400, 1, 1, 'attempt_ended', 'danlu', 'attempt 1 succeeded');
INSERT INTO public.events VALUES (5, 1795131016416400, 1, NULL, 'job_ended', 'danlu', 'succeeded');
INSERT INTO public.events VALUES (6, 1795131016557465, 2, NULL, 'job_submitted', 'ada', 'submitted `done`');
INSERT INTO public.events VALUES (7, 1795131016564633, 2, 1, 'attempt_placed', 'danlu', 'attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO public.events VALUES (8, 1795131016593684, 2, 1, 'attempt_running', 'danlu', 'attempt 1 is running');
INSERT INTO public.events VALUES (9, 1795131016593684, 2, 1, 'attempt_ended', 'danlu', 'attempt 1 succeeded');
INSERT INTO public.events VALUES (10, 1795131016593684, 2, NULL, 'job_ended', 'danlu', 'succeeded');
INSERT INTO public.events VALUES (11, 1795131016626387, 3, NULL, 'job_submitted', 'ada', 'submitted `failed`');
INSERT INTO public.events VALUES (12, 1795131016629675, 3, 1, 'attempt_placed', 'danlu', 'attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO public.events VALUES (13, 1795131016658232, 3, 1, 'attempt_running', 'danlu', 'attempt 1 is running');
INSERT INTO public.events VALUES (14, 1795131016658232, 3, 1, 'attempt_ended', 'danlu', 'attempt 1 failed: worker 0, rank 0 ended with code 3');
INSERT INTO public.events VALUES (15, 1795131016658232, 3, NULL, 'job_ended', 'danlu', 'failed: worker 0, rank 0 ended with code 3');
INSERT INTO public.events VALUES (16, 1795131016691191, 4, NULL, 'job_submitted', 'ada', 'submitted `stopped`');
INSERT INTO public.events VALUES (17, 1795131016693827, 4, 1, 'attempt_placed', 'danlu', 'attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO public.events VALUES (18, 1795131016712484, 4, 1, 'attempt_running', 'danlu', 'attempt 1 is running');
INSERT INTO public.events VALUES (19, 1795131016813772, 4, 1, 'stop_requested', 'ada', 'stop requested, with 0s of grace');
INSERT INTO public.events VALUES (20, 1795131016914409, 4, 1, 'attempt_ended', 'danlu', 'attempt 1 was stopped by ada');
INSERT INTO public.events VALUES (21, 1795131016914409, 4, NULL, 'job_ended', 'danlu', 'stopped by ada');
INSERT INTO public.events VALUES (22, 1795131017009269, 5, NULL, 'job_submitted', 'ada', 'submitted `runs`');
INSERT INTO public.events VALUES (23, 1795131017021998, 5, 1, 'attempt_placed', 'danlu', 'attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO public.events VALUES (24, 1795131017048505, 5, 1, 'attempt_running', 'danlu', 'attempt 1 is running');
INSERT INTO public.events VALUES (25, 1795131017132285, 6, NULL, 'job_submitted', 'ada', 'submitted `waits`');
INSERT INTO public.events VALUES (26, 1795131017135470, 7, NULL, 'job_submitted', 'ada', 'submitted `held`');
INSERT INTO public.events VALUES (27, 1795131017139425, 7, NULL, 'job_held', 'ada', 'held');
INSERT INTO public.events VALUES (28, 1795131017141506, 8, NULL, 'job_submitted', 'ada', 'submitted `asks`');
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'succeeded', 2);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'failed', 1);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'stopped', 1);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'stopping', 0);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'queued', 0);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'running', 1);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'starting', 0);
INSERT INTO public.job_counts VALUES ('default', 'ada', 'held', 1);
INSERT INTO public.job_counts VALUES ('default', 'ada', 'queued', 1);
INSERT INTO public.job_counts VALUES ('lab', 'ada', 'held', 1);
INSERT INTO public.job_labels VALUES (2, 'project', 'ocr');
INSERT INTO public.job_search VALUES (1, '{62,6A,6A6F,6A6F62,6F,6F62,w6C6162,o616461}');
INSERT INTO public.job_search VALUES (2, '{64,646F,646F6E,65,6E,6E65,6F,6F6E,6F6E65,w6C6162,o616461}');
INSERT INTO public.job_search VALUES (3, '{61,6169,61696C,64,65,6564,66,6661,666169,69,696C,696C65,6C,6C65,6C6564,w6C6162,o616461}');
INSERT INTO public.job_search VALUES (4, '{64,65,6564,6F,6F70,6F7070,70,7065,706564,7070,707065,73,7374,73746F,74,746F,746F70,w6C6162,o616461}');
INSERT INTO public.job_search VALUES (5, '{6E,6E73,72,7275,72756E,73,75,756E,756E73,w6C6162,o616461}');
INSERT INTO public.job_search VALUES (6, '{61,6169,616974,69,6974,697473,73,74,7473,77,7761,776169,w64656661756C74,o616461}');
INSERT INTO public.job_search VALUES (7, '{64,65,656C,656C64,68,6865,68656C,6C,6C64,w64656661756C74,o616461}');
INSERT INTO public.job_search VALUES (8, '{61,6173,61736B,6B,6B73,73,736B,736B73,w6C6162,o616461}');
INSERT INTO public.jobs VALUES (1, 'job', 'lab', 'ada', 5, 'ended', 'succeeded', 1795131016371880, 1795131016416400, 4, '{"name":"job","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"true","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:16.371880012Z","life":{"ended":{"at":"2026-11-19T23:30:16.416400853Z","outcome":"succeeded"}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:16.389626869Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:16.41611063Z","at":"2026-11-19T23:30:16.416400853Z","exit":"succeeded"}}}]},"ended_at":"2026-11-19T23:30:16.416400853Z","verdict":"succeeded"}]}', NULL);
INSERT INTO public.jobs VALUES (2, 'done', 'lab', 'ada', 5, 'ended', 'succeeded', 1795131016557465, 1795131016593684, 4, '{"name":"done","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"echo first; echo more >&2","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]},"labels":{"project":"ocr"}}', '{"submitted_at":"2026-11-19T23:30:16.557465147Z","life":{"ended":{"at":"2026-11-19T23:30:16.593684153Z","outcome":"succeeded"}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:16.564633179Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:16.593329754Z","at":"2026-11-19T23:30:16.593684153Z","exit":"succeeded"}}}]},"ended_at":"2026-11-19T23:30:16.593684153Z","verdict":"succeeded"}]}', NULL);
INSERT INTO public.jobs VALUES (3, 'failed', 'lab', 'ada', 5, 'ended', 'failed', 1795131016626387, 1795131016658232, 4, '{"name":"failed","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"echo no; exit 3","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:16.62638708Z","life":{"ended":{"at":"2026-11-19T23:30:16.658232105Z","outcome":{"failed":{"attempt":1,"worker":0,"failure":{"cause":"exit","rank":0,"exit":{"code":3}}}}}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:16.62967584Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:16.657343679Z","at":"2026-11-19T23:30:16.658232105Z","exit":{"failed":{"cause":"exit","rank":0,"exit":{"code":3}}}}}}],"stop":{"since":"2026-11-19T23:30:16.658232105Z","why":{"worker_failed":{"worker":0}},"grace":"30s"}},"ended_at":"2026-11-19T23:30:16.658232105Z","verdict":{"failed":{"worker":0,"failure":{"cause":"exit","rank":0,"exit":{"code":3}}}}}]}', NULL);
INSERT INTO public.jobs VALUES (4, 'stopped', 'lab', 'ada', 5, 'ended', 'stopped', 1795131016691191, 1795131016914409, 5, '{"name":"stopped","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"sleep 1000","priority":5,"preemptible":false,"grace":"0s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:16.691191869Z","life":{"ended":{"at":"2026-11-19T23:30:16.914409226Z","outcome":{"stopped":{"who":"ada"}}}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:16.693827511Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:16.712484095Z","at":"2026-11-19T23:30:16.914409226Z","exit":"stopped"}}}],"stop":{"since":"2026-11-19T23:30:16.813772737Z","why":{"by_user":{"who":"ada"}},"grace":"0s"}},"ended_at":"2026-11-19T23:30:16.914409226Z","verdict":{"stopped":{"who":"ada"}}}]}', NULL);
INSERT INTO public.jobs VALUES (5, 'runs', 'lab', 'ada', 5, 'running', NULL, 1795131017009269, NULL, 3, '{"name":"runs","workspace":"lab","image":"host","workers":1,"devices":{"kind":"ascend","count":4},"cpus":"0.01","framework":"none","command":"echo before; while ! [ -e @DATA@/go ]; do sleep 0.1; done; echo after","priority":5,"secrets":{"WANDB_API_KEY":{"name":"wandb"}},"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:17.009269069Z","life":{"active":{"number":1,"placed_at":"2026-11-19T23:30:17.02199814Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[0,1,2,3],"cpus":"0.01","memory":"0"},"state":{"running":{"since":"2026-11-19T23:30:17.04850534Z"}}}]}}}', NULL);
INSERT INTO public.jobs VALUES (6, 'waits', 'default', 'ada', 5, 'queued', NULL, 1795131017132285, NULL, 1, '{"name":"waits","workspace":"default","image":"host","workers":1,"devices":{"kind":"ascend","count":8},"cpus":"0.01","framework":"none","command":"echo in turn","priority":5,"preemptible":true,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:17.132285874Z","life":{"queued":{"since":"2026-11-19T23:30:17.132285874Z","why":"submitted"}}}', NULL);
INSERT INTO public.jobs VALUES (7, 'held', 'default', 'ada', 5, 'held', NULL, 1795131017135470, NULL, 2, '{"name":"held","workspace":"default","image":"host","workers":1,"devices":{"kind":"ascend","count":8},"cpus":"0.01","framework":"none","command":"true","priority":5,"preemptible":true,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:17.135470108Z","life":{"held":{"since":"2026-11-19T23:30:17.139425954Z","by":"ada"}}}', NULL);
INSERT INTO public.jobs VALUES (8, 'asks', 'lab', 'ada', 5, 'held', NULL, 1795131017141506, NULL, 1, '{"name":"asks","workspace":"lab","image":"host","workers":1,"devices":{"kind":"ascend","count":8},"cpus":"0.01","framework":"none","command":"true","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}', '{"submitted_at":"2026-11-19T23:30:17.141506661Z","life":{"held":{"since":"2026-11-19T23:30:17.141506661Z","by":"danlu","approval":{"resource":"ascend","asked":"8","limit":"4","workspace":"lab"}}}}', NULL);
INSERT INTO public.schema_version VALUES (1);
INSERT INTO public.schema_version VALUES (2);
INSERT INTO public.schema_version VALUES (3);
INSERT INTO public.schema_version VALUES (4);
INSERT INTO public.schema_version VALUES (5);
INSERT INTO public.schema_version VALUES (6);
INSERT INTO public.schema_version VALUES (7);
INSERT INTO public.schema_version VALUES (8);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.directory
    ADD CONSTRAINT directory_pkey PRIMARY KEY (kind, key);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.job_counts
    ADD CONSTRAINT job_counts_pkey PRIMARY KEY (workspace, owner, status);
ALTER TABLE ONLY public.job_labels
    ADD CONSTRAINT job_labels_pkey PRIMARY KEY (job, key);
ALTER TABLE ONLY public.job_search
    ADD CONSTRAINT job_search_pkey PRIMARY KEY (job);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.node_notes
    ADD CONSTRAINT node_notes_pkey PRIMARY KEY (node);
ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_pkey PRIMARY KEY (key);
CREATE INDEX audit_by_whom ON public.audit USING btree (by_whom, number);
CREATE INDEX audit_subject ON public.audit USING btree (subject, number);
CREATE INDEX events_by_job ON public.events USING btree (job, number);
CREATE INDEX job_labels_by_value ON public.job_labels USING btree (key, value, job);
CREATE INDEX job_search_by_word ON public.job_search USING gin (words);
CREATE INDEX jobs_by_code ON public.jobs USING btree (code) WHERE (code IS NOT NULL);
CREATE INDEX jobs_by_end ON public.jobs USING btree (ended_at, id) WHERE (ended_at IS NOT NULL);
CREATE INDEX jobs_by_name ON public.jobs USING btree (name, id);
CREATE INDEX jobs_by_owner_status ON public.jobs USING btree (owner, COALESCE(outcome, state), id);
CREATE INDEX jobs_by_status ON public.jobs USING btree (COALESCE(outcome, state), id);
CREATE INDEX jobs_by_workspace_status ON public.jobs USING btree (workspace, COALESCE(outcome, state), id);
CREATE INDEX jobs_live ON public.jobs USING btree (id) WHERE (ended_at IS NULL);
CREATE INDEX submissions_by_job ON public.submissions USING btree (job);
CREATE TRIGGER events_are_deleted_after_their_job BEFORE DELETE ON public.events FOR EACH ROW EXECUTE FUNCTION public.events_refuse_early_delete();
CREATE TRIGGER events_are_never_changed BEFORE UPDATE OR TRUNCATE ON public.events FOR EACH STATEMENT EXECUTE FUNCTION public.events_refuse_change();
CREATE TRIGGER job_search_follows AFTER INSERT OR UPDATE OF name, workspace, owner ON public.jobs FOR EACH ROW EXECUTE FUNCTION public.job_search_follow();
ALTER TABLE ONLY public.job_labels
    ADD CONSTRAINT job_labels_job_fkey FOREIGN KEY (job) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_search
    ADD CONSTRAINT job_search_job_fkey FOREIGN KEY (job) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_job_fkey FOREIGN KEY (job) REFERENCES public.jobs(id) ON DELETE CASCADE;
