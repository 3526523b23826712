// What a person sees of a page once all that opens by its own markup is open; run in Chromium, scripts of the page barred.
// Returns its text, its pieces with the reasons for which a reader of HTML may lose them, table rows, listings.
() => {
  const every = (what, root = document) => [...root.querySelectorAll(what)];
  const NAMED = /accordion|collaps|faq|tab[-_]*(?:pan|content)|spoiler|toggle-?(?:content|panel)/i;
  const MENU = 'nav, header, menu, [role=menu], [role=menubar], [role=navigation], [role=search], [role=listbox], [role=dialog], dialog, select';
  const READER = /\b(?:sr-only|visually-?hidden|screen-?reader(?:-text)?|a-offscreen|show-for-sr|assistive-text)\b/;
  const NOTHING = 'script, style, template, noscript, iframe, object, head, textarea, video, audio, canvas';

  // Letters as the page has them; what MediaWiki's own sheet, which is not stored, never shows.
  const sheet = document.createElement('style');
  sheet.textContent = '* { text-transform: none !important; }';
  if (document.querySelector('#mw-content-text, .mw-parser-output, .wikitable'))
    sheet.textContent += '.sortkey, .mw-empty-elt, .mw-jump-link { display: none !important; }';
  document.documentElement.append(sheet);
  // 1. Shadow roots are drawn in the place of their hosts, which innerText does not say.
  for (let round = 0; round < 9; round++) {
    const hosts = every('*').filter(node => node.shadowRoot);
    if (!hosts.length) break;
    for (const host of hosts) {
      const drawn = document.createElement('span');
      drawn.style.display = getComputedStyle(host).display;
      const root = host.shadowRoot;
      for (const slot of every('slot', root)) {
        const given = slot.assignedNodes();
        slot.replaceWith(...(given.length ? given : [...slot.childNodes]));
      }
      every('style, link', root).forEach(node => node.remove());
      drawn.append(...root.childNodes);
      host.replaceWith(drawn);
    }
  }
  // 2. React's segments move to their places, as its script moves them.
  for (const place of every('template[id]')) {
    const named = /^(.*)[BP]:([0-9a-f]+)$/.exec(place.id);
    const segment = named && document.getElementById(named[1] + 'S:' + named[2]);
    if (!segment) continue;
    const before = place.previousSibling;
    if (before && before.nodeType === 8 && before.data.startsWith('$')) {
      let depth = 0;
      for (let node = place.nextSibling; node; ) {
        const next = node.nextSibling, mark = node.nodeType === 8 ? node.data : '';
        if (mark === '/$' && !depth) break;
        depth += mark === '/$' ? -1 : /^\$[?!]?$/.test(mark) ? 1 : 0;
        node.remove();
        node = next;
      }
    }
    place.replaceWith(...segment.childNodes);
    segment.remove();
  }
  // 3. Whatever opens is opened; a menu or a dialog is no text.
  const wanted = new Set();
  for (const opener of every('[aria-controls], [data-target], [data-bs-target], [data-toggle][href], [data-bs-toggle][href]')) {
    const names = [opener.getAttribute('aria-controls') || ''];
    for (const key of ['data-target', 'data-bs-target', 'href']) {
      const value = opener.getAttribute(key) || '';
      if (value[0] === '#') names.push(value.slice(1));
    }
    if (/modal|dropdown|offcanvas/.test((opener.dataset.toggle || '') + (opener.dataset.bsToggle || '') + (opener.getAttribute('aria-haspopup') || ''))) continue;
    names.join(' ').split(/\s+/).filter(Boolean).forEach(name => wanted.add(name));
  }
  const opens = node => {
    if (node.closest(MENU) || node.matches('svg *, ' + NOTHING)) return false;
    if (node.getAttribute('role') === 'tabpanel' || node.getAttribute('hidden') === 'until-found') return true;
    if (node.id && wanted.has(node.id)) return true;
    const name = typeof node.className === 'string' ? node.className : '';
    if (NAMED.test(name) || NAMED.test(node.id)) return true;
    const before = node.previousElementSibling;
    return !!before && (before.matches('[aria-expanded=false]') || (before.textContent.length < 400 && !!before.querySelector('[aria-expanded=false]')));
  };
  every('details').forEach(node => { node.open = true; });
  for (const node of every('body *')) {
    const style = getComputedStyle(node);
    const shut = style.display === 'none' || style.visibility === 'hidden' || node.hasAttribute('hidden') ||
      (style.overflowY === 'hidden' && (style.height === '0px' || style.maxHeight === '0px'));
    if (!shut || !opens(node)) continue;
    node.removeAttribute('hidden');
    node.dataset.opened = '';
    for (const [key, value] of [['display', 'block'], ['visibility', 'visible'], ['height', 'auto'], ['max-height', 'none'], ['opacity', '1']])
      if (key !== 'display' || getComputedStyle(node).display === 'none') node.style.setProperty(key, value, 'important');
  }
  // A dialog or menu that says it is closed is none of the page's text; nor are the copies that make a carousel endless.
  const CLOSED = '[role=dialog], [role=alertdialog], [role=menu], [role=status], [role=tooltip], [role=listbox], [role=search], nav, menu';
  const CLOSED_NAME = /modal|dialog|overlay|popup|popover|drawer|off-?canvas|menu|(?:^|[-_ ])(?:nav|cart|bag|tooltip|cookie|consent|cta|sign-?in)|signin|Tooltip/i;
  const closed = [];
  for (const node of every('[aria-hidden=true]')) {
    if ('opened' in node.dataset || !node.checkVisibility() || !node.textContent.trim()) continue;
    const name = (node.getAttribute('class') || '') + ' ' + node.id;
    if (node.matches(CLOSED) || node.closest('nav, header') || CLOSED_NAME.test(name) || /slick-cloned|swiper-slide-duplicate/.test(name)) closed.push(node);
  }
  for (const node of every('nav *, header *')) {
    const style = getComputedStyle(node);
    if (parseFloat(style.opacity) < .05 && node.textContent.trim() && !closed.some(other => other.contains(node))) closed.push(node);
  }
  const shut = closed.map(node => node.textContent).join(' ');
  closed.forEach(node => node.style.setProperty('display', 'none', 'important'));
  // 4. Where a reader sees a word end although no letter of the page says so.
  for (const node of every('sup, sub, rt, rp')) { node.prepend('\ue000'); node.append('\ue000'); }
  for (const node of every('body *:not(svg *)')) {
    let next = node.nextSibling;
    while (next && next.nodeType === 8) next = next.nextSibling;
    if (next && next.nodeType === 1 && /[\p{L}\p{N}]$/u.test(node.textContent) && /^[\p{L}\p{N}]/u.test(next.textContent))
      node.after(node.matches('a, button') && next.matches('a, button') ? ' ' : '\ue000');
  }
  // 5. What is nowhere on the screen, by its position and size alone.
  const never = [];
  for (const node of every('body *')) {
    if (node.closest('svg') || !node.checkVisibility() || !node.textContent.trim()) continue;
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    const small = style.overflow !== 'visible' && (style.position === 'absolute' || style.position === 'fixed') && box.width <= 1 && box.height <= 1;
    const away = box.width && box.height && (box.right <= -200 || box.bottom <= -200);
    const indent = parseFloat(style.textIndent) <= -480;
    if (small || away || indent || parseFloat(style.fontSize) <= 1) never.push(node);
  }
  const unseen = never.map(node => node.textContent).join(' ');
  never.forEach(node => node.style.setProperty('display', 'none', 'important'));
  // 6. The pieces, with what may be a reason to lose them.
  const known = new Map();
  const why = node => {
    if (!node || node === document.body || node === document.documentElement) return '';
    if (known.has(node)) return known.get(node);
    const above = why(node.parentElement), style = getComputedStyle(node), own = [];
    if ('opened' in node.dataset) own.push('opened');
    if (node.getAttribute('aria-hidden') === 'true') own.push('aria-hidden');
    if (parseFloat(style.opacity) < .05) own.push('faded');
    if (READER.test(node.getAttribute('class') || '')) own.push('for screen readers');
    if (node.matches('option, button, textarea, legend, label, svg, pre, sup, sub, math, canvas, object, details, summary')) own.push(node.localName);
    if (node.localName.includes('-')) own.push('custom element');
    if (node.matches('dialog, [role=dialog], [role=alert], [role=tooltip], [role=menu]')) own.push('dialog');
    const said = [...new Set([...above.split(','), ...own])].filter(Boolean).join(',');
    known.set(node, said);
    return said;
  };
  const pieces = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inner = node.parentElement;
    if (!node.data.trim() || inner.closest(NOTHING)) continue;
    if (inner.checkVisibility({visibilityProperty: true})) pieces.push([node.data, why(inner)]);
  }
  // 7. Rows and listings. In a listing, what numbers its lines and buttons are none of its text, as copying leaves them out.
  const rows = [];
  for (const table of every('table, [role=table], [role=grid]')) {
    if (table.querySelector('table') || table.closest('pre') || !table.checkVisibility()) continue;
    const found = [];
    for (const row of every('tr, [role=row]', table)) {
      const cells = every('td, th, [role=cell], [role=gridcell], [role=columnheader], [role=rowheader]', row)
        .filter(cell => cell.checkVisibility()).map(cell => cell.innerText.trim());
      if (cells.filter(Boolean).length > 1) found.push(cells.filter(Boolean));
    }
    if (found.length > 1) rows.push({layout: table.getAttribute('role') === 'presentation' || found.flat().some(text => text.split('\n').length > 6), rows: found, code: !!table.querySelector('pre, .blob-code, td.code')});
  }
  const listings = [];
  for (const listing of every('pre, table.highlight, .highlight > table')) {
    if (listing.parentElement.closest('pre, table.highlight') || listing.querySelector('pre') || !listing.checkVisibility() || listing.closest('svg')) continue;
    const lines = every('.line-number, .lineno, .linenos, .hljs-ln-numbers, .blob-num, .gutter, .rouge-gutter, [data-line-number], .ln, .lnt', listing);
    const left = [...lines, ...every('*', listing).filter(node => getComputedStyle(node).userSelect === 'none'), ...every('button, [role=button]', listing)];
    const away = left.filter(node => node.matches('button, [role=button]') || /^[\s\d]*$/.test(node.textContent));
    away.forEach(node => { node.dataset.was = node.style.display; node.style.setProperty('display', 'none', 'important'); });
    listings.push({text: listing.innerText, custom: !!every('*', listing).find(node => node.localName.includes('-')), table: listing.localName === 'table' || !!listing.closest('table')});
    away.forEach(node => { node.style.display = node.dataset.was; });
  }
  const text = document.body ? document.body.innerText : '';
  every('script, style').forEach(node => node.remove());
  const whole = document.documentElement.textContent;
  const alts = [...every('[alt]').map(node => node.getAttribute('alt')), ...every('[aria-label]').map(node => node.getAttribute('aria-label'))].join(' ');
  return {text, pieces, unseen, shut, alts, whole, rows, listings};
}
